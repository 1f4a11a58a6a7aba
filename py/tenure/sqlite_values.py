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
"""What `lease_of` reads of a row, in its order."""


def lease_of(row: sqlite3.Row) -> JobLease:
    """The lease that a claim or a reclaim wrote."""
    return leases_of([row])[0]


def leases_of(rows: Sequence[sqlite3.Row]) -> list[JobLease]:
    """The leases that a claim wrote; their payloads are decoded together."""
    leases = []
    for row, payload in zip(rows, loads_all([row["payload"] for row in rows]), strict=True):
        (
            job_id,
            token,
            worker_id,
            lease_expires_at,
            queue,
            kind,
            _,
            priority,
            attempt,
            max_attempts,
            timeout,
            buffered,
            solo,
            progress,
            meta,
            created_at,
            last_error,
            _,
        ) = row
        leases.append(
            JobLease(
                job_id,
                token,
                worker_id,
                moment(lease_expires_at),
                queue,
                kind,
                payload,
                priority,
                attempt,
                max_attempts,
                duration(timeout),
                bool(buffered),
                bool(solo),
                loads(progress),
                loads(meta),
                moment(created_at),
                last_error,
            )
        )
    return leases
