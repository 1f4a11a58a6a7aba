"""The answers of the functions, read from rows of text."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from tenure.values import (
    Enqueued,
    HeldLease,
    JobAnswer,
    JobLease,
    JobStatus,
    LapsedLease,
    LeaseRenewal,
    QueueAnswer,
    Renewal,
    Settled,
    Swept,
    Verdict,
)
from tests.schedules.rows import MICROSECOND, moment

Fields = Sequence[str | None]
Read = Callable[[Sequence[Fields]], Any]


def _time(name: str) -> str:
    return f"(extract(epoch from {name}) * 1000000)::bigint"


VERDICT = f"job_id, token, verdict, status, {_time('next_attempt_at')}"
LEASE = (
    f"job_id, token, worker_id, {_time('lease_expires_at')}, queue, kind, payload, priority, "
    f"attempt, max_attempts, {_time('timeout')}, buffered::int, solo::int, progress, meta, "
    f"{_time('created_at')}, last_error"
)
SWEPT = f"job_id, token, outcome, status, {_time('next_attempt_at')}"
RENEWAL = f"job_id, token, outcome, {_time('lease_expires_at')}, cancel_requested::int"
LAPSED = f"job_id, worker_id, token, {_time('lease_expires_at')}"
HELD = f"job_id, token, {_time('lease_expires_at')}"
JOB = "job_id, verdict, status"
QUEUE = f"queue, verdict, {_time('paused_at')}"


def _int(text: str | None) -> int:
    assert text is not None
    return int(text)


def _status(text: str | None) -> JobStatus | None:
    return None if text is None else JobStatus(text)


def settled(f: Fields) -> Settled:
    return Settled(
        job_id=_int(f[0]),
        token=_int(f[1]),
        verdict=Verdict(str(f[2])),
        status=_status(f[3]),
        next_attempt_at=moment(f[4]),
    )


def lease(f: Fields) -> JobLease:
    expires, created = moment(f[3]), moment(f[15])
    assert expires is not None
    assert created is not None
    return JobLease(
        job_id=_int(f[0]),
        token=_int(f[1]),
        worker_id=str(f[2]),
        lease_expires_at=expires,
        queue=str(f[4]),
        kind=str(f[5]),
        payload=f[6],
        priority=_int(f[7]),
        attempt=_int(f[8]),
        max_attempts=_int(f[9]),
        timeout=None if f[10] is None else int(f[10]) * MICROSECOND,
        buffered=f[11] == "1",
        solo=f[12] == "1",
        progress=None if f[13] is None else json.loads(f[13]),
        meta=f[14],
        created_at=created,
        last_error=f[16],
    )


def swept(f: Fields) -> Swept:
    return Swept(
        job_id=_int(f[0]),
        token=_int(f[1]),
        outcome=str(f[2]),
        status=JobStatus(str(f[3])),
        next_attempt_at=moment(f[4]),
    )


def renewal(f: Fields) -> Renewal:
    return Renewal(
        job_id=_int(f[0]),
        token=_int(f[1]),
        outcome=LeaseRenewal(str(f[2])),
        lease_expires_at=moment(f[3]),
        cancel_requested=f[4] == "1",
    )


def lapsed(f: Fields) -> LapsedLease:
    expires = moment(f[3])
    assert expires is not None
    return LapsedLease(
        job_id=_int(f[0]), worker_id=str(f[1]), token=_int(f[2]), lease_expires_at=expires
    )


def held(f: Fields) -> HeldLease:
    expires = moment(f[2])
    assert expires is not None
    return HeldLease(job_id=_int(f[0]), token=_int(f[1]), lease_expires_at=expires)


def job(f: Fields) -> JobAnswer:
    return JobAnswer(
        job_id=_int(f[0]), verdict=Verdict(str(f[1])), status=_status(f[2]), holder_pid=None
    )


def queue(f: Fields) -> QueueAnswer:
    return QueueAnswer(
        queue=str(f[0]), verdict=Verdict(str(f[1])), paused_at=moment(f[2]), holder_pid=None
    )


def enqueued(f: Fields) -> Enqueued:
    return Enqueued(job_id=_int(f[0]), created=f[1] == "1")


def single(read: Callable[[Fields], Any]) -> Read:
    def only(rows: Sequence[Fields]) -> Any:
        [row] = rows
        return read(row)

    return only


def optional(read: Callable[[Fields], Any]) -> Read:
    return lambda rows: single(read)(rows) if rows else None


def many(read: Callable[[Fields], Any]) -> Read:
    return lambda rows: [read(row) for row in rows]
