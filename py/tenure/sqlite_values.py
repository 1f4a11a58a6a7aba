"""What SQLite stores, turned into what the control plane hands out."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from tenure.codec import loads
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


def lease_of(row: sqlite3.Row) -> JobLease:
    """The lease that a claim or a reclaim wrote."""
    return JobLease(
        job_id=row["id"],
        token=row["token"],
        worker_id=row["worker_id"],
        lease_expires_at=moment(row["lease_expires_at"]),
        queue=row["queue"],
        kind=row["kind"],
        payload=loads(row["payload"]),
        priority=row["priority"],
        attempt=row["attempt"],
        max_attempts=row["max_attempts"],
        timeout=duration(row["timeout"]),
        buffered=bool(row["buffered"]),
        solo=bool(row["solo"]),
        progress=loads(row["progress"]),
        meta=loads(row["meta"]),
        created_at=moment(row["created_at"]),
        last_error=row["last_error"],
    )
