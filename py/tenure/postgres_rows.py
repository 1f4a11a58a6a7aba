"""Rows of tenure's answers as values, one column list for each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from tenure.codec import loads, loads_all
from tenure.postgres_call import Row, utc
from tenure.values import (
    Enqueued,
    HeldLease,
    JobAnswer,
    JobLease,
    JobResult,
    JobStatus,
    LapsedLease,
    LeaseRenewal,
    QueueAnswer,
    Renewal,
    Settled,
    Swept,
    Verdict,
)

LEASE = (
    "job_id, token, worker_id, lease_expires_at, queue, kind, payload::text, priority, attempt,"
    " max_attempts, timeout, buffered, solo, progress::text, meta::text, created_at, last_error"
)
LAPSED = "job_id, worker_id, token, lease_expires_at"
HELD = "job_id, token, lease_expires_at"
RENEWAL = "job_id, token, outcome, lease_expires_at, cancel_requested"
VERDICT = "job_id, token, verdict, status::text, next_attempt_at"
SWEPT = "job_id, token, outcome, status::text, next_attempt_at"
ENQUEUED = "job_id, created"
JOB_ANSWER = "job_id, verdict, status::text, holder_pid"
QUEUE_ANSWER = "queue, verdict, paused_at, holder_pid"
RESULT = "job_id, token, status::text, result::text, error_type, message"

# Looked up for every job that is settled, where calling the enum would cost as much as the rest.
_VERDICTS = {verdict.value: verdict for verdict in Verdict}
_STATUSES: dict[str | None, JobStatus | None] = {None: None}
_STATUSES |= {status.value: status for status in JobStatus}


def lease(row: Row) -> JobLease:
    return leases([row])[0]


def leases(rows: Sequence[Row]) -> list[JobLease]:
    """Payloads are decoded all at once, for each alone takes three times as long."""
    payloads = loads_all([row[6] for row in rows])
    return [
        JobLease(
            job_id,
            token,
            worker_id,
            _utc(lease_expires_at),
            queue,
            kind,
            payload,
            priority,
            attempt,
            max_attempts,
            timeout,
            buffered,
            solo,
            loads(progress),
            loads(meta),
            _utc(created_at),
            last_error,
        )
        for (
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
        ), payload in zip(rows, payloads, strict=True)
    ]


def _utc(value: datetime) -> datetime:
    return value if value.tzinfo is UTC else value.astimezone(UTC)


def lapsed(row: Row) -> LapsedLease:
    return LapsedLease(
        job_id=row[0], worker_id=row[1], token=row[2], lease_expires_at=row[3].astimezone(UTC)
    )


def held(row: Row) -> HeldLease:
    return HeldLease(job_id=row[0], token=row[1], lease_expires_at=row[2].astimezone(UTC))


def renewal(row: Row) -> Renewal:
    return Renewal(
        job_id=row[0],
        token=row[1],
        outcome=LeaseRenewal(row[2]),
        lease_expires_at=utc(row[3]),
        cancel_requested=bool(row[4]),
    )


def settled(row: Row) -> Settled:
    return Settled(row[0], row[1], _VERDICTS[row[2]], _STATUSES[row[3]], utc(row[4]))


def swept(row: Row) -> Swept:
    return Swept(
        job_id=row[0],
        token=row[1],
        outcome=row[2],
        status=JobStatus(row[3]),
        next_attempt_at=utc(row[4]),
    )


def enqueued(row: Row) -> Enqueued:
    return Enqueued(*row)


def job_answer(row: Row) -> JobAnswer:
    return JobAnswer(
        job_id=row[0],
        verdict=Verdict(row[1]),
        status=None if row[2] is None else JobStatus(row[2]),
        holder_pid=row[3],
    )


def queue_answer(row: Row) -> QueueAnswer:
    return QueueAnswer(
        queue=row[0], verdict=Verdict(row[1]), paused_at=utc(row[2]), holder_pid=row[3]
    )


def result(row: Row) -> JobResult:
    return JobResult(
        job_id=row[0],
        token=row[1],
        status=JobStatus(row[2]),
        result=loads(row[3]),
        error_type=row[4],
        message=row[5],
    )
