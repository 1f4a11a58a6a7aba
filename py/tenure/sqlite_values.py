"""What SQLite stores, turned into what the control plane hands out."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from tenure.codec import loads, loads_all
from tenure.values import JobLease

Clock: TypeAlias = Callable[[], datetime]
"""The present moment, aware."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def host_clock() -> datetime:
    return datetime.now(UTC)


def micros(moment: datetime) -> int:
    """An aware moment as it is stored: whole microseconds since 1970."""
    return (moment - EPOCH) // MICROSECOND


def moment(stored: int) -> datetime:
    return EPOCH + stored * MICROSECOND


def optional_moment(stored: int | None) -> datetime | None:
    return None if stored is None else moment(stored)


def span(duration: timedelta) -> int:
    """A duration as it is stored: whole microseconds."""
    return duration // MICROSECOND


def optional_span(duration: timedelta | None) -> int | None:
    return None if duration is None else span(duration)


def duration(stored: int | None) -> timedelta | None:
    return None if stored is None else stored * MICROSECOND


def whole_milliseconds(stored: int) -> int:
    return stored // 1000 * 1000


LEASED = """id, token, worker_id, lease_expires_at, queue, kind, payload, priority, attempt,
          max_attempts, timeout, buffered, solo, progress, meta, created_at, last_error,
          next_attempt_at"""
"""The columns of a `JobLease` in its order, and what a claim is sorted by besides."""


def lease_of(row: sqlite3.Row) -> JobLease:
    """The lease that a claim or a reclaim wrote."""
    return leases_of([row])[0]


def leases_of(rows: Sequence[sqlite3.Row]) -> list[JobLease]:
    """The leases that a claim wrote; their payloads are decoded together."""
    return [
        JobLease._make(row[:-1])._replace(
            lease_expires_at=moment(row["lease_expires_at"]),
            payload=payload,
            timeout=duration(row["timeout"]),
            buffered=bool(row["buffered"]),
            solo=bool(row["solo"]),
            progress=loads(row["progress"]),
            meta=loads(row["meta"]),
            created_at=moment(row["created_at"]),
        )
        for row, payload in zip(rows, loads_all([row["payload"] for row in rows]), strict=True)
    ]
