"""What people look at, read from the views of a PostgreSQL schema."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

from tenure import postgres_rows
from tenure.codec import loads
from tenure.limits import check_int, check_job_id, check_name
from tenure.postgres_call import Connection, Functions, Row, utc
from tenure.records import MAX_RECORDS, AttemptRecord, JobRecord, QueueRecord, check_shown
from tenure.values import JobResult, JobStatus

_JOB = (
    "job_id, queue, kind, status::text, shade, priority, attempt, max_attempts, token, worker_id,"
    " next_attempt_at, lease_expires_at, claimed_at, created_at, finished_at, cancel_requested,"
    " sealed_at, buffered, solo, dedup_key, timeout, payload::text, result::text,"
    " progress::text, meta::text, last_error"
)
_ATTEMPT = (
    "job_id, token, worker_id, attempt, verb, outcome, started_at, ended_at, error_type, message,"
    " traceback"
)
_QUEUE = "queue, paused_at, queued, scheduled, retrying, running, oldest_due_at"


class PostgresRecords:
    """Reads the views `jobs`, `attempts` and `queues`; the right to observe is enough."""

    def __init__(self, connection: Connection, *, schema: str = "tenure") -> None:
        self._functions = Functions(connection, schema)

    def job(self, job_id: int) -> JobRecord | None:
        """The job, live or in the history that is kept; None for an unknown id."""
        rows = self._view(_JOB, "jobs where job_id = %s::bigint", [check_job_id(job_id)])
        return _job(rows[0]) if rows else None

    def results(self, job_ids: Sequence[int]) -> list[JobResult]:
        """What has come of 1 to 1,000 jobs, in no order; none for an unknown id.

        For everybody who enqueues or works, whatever the right to observe.
        """
        rows = self._functions.rows(
            postgres_rows.RESULT, "results(p_job_ids => %s::bigint[])", (list(job_ids),)
        )
        return [postgres_rows.result(row) for row in rows]

    def jobs(
        self,
        *,
        queue: str | None = None,
        status: JobStatus | str | None = None,
        limit: int = 100,
    ) -> list[JobRecord]:
        """The latest 1 to 10,000 jobs by id, newest first."""
        tests: list[str] = []
        arguments: list[object] = []
        if queue is not None:
            tests.append("queue = %s::text")
            arguments.append(check_name(queue, "queue"))
        if status is not None:
            tests.append("%s::text in (status::text, shade)")
            arguments.append(check_shown(status))
        arguments.append(check_int(limit, "limit", 1, MAX_RECORDS))
        where = f" where {' and '.join(tests)}" if tests else ""
        return [
            _job(row)
            for row in self._view(
                _JOB, f"jobs{where} order by job_id desc limit %s::int", arguments
            )
        ]

    def attempts(self, job_id: int) -> list[AttemptRecord]:
        """The attempts of a job that are kept, the last 20 at most, oldest first."""
        rows = self._view(
            _ATTEMPT, "attempts where job_id = %s::bigint order by token", [check_job_id(job_id)]
        )
        return [_attempt(row) for row in rows]

    def queues(self) -> list[QueueRecord]:
        """Every queue that has a live job or a setting, by name."""
        rows = self._view(_QUEUE, 'queues order by queue collate "C"')
        return [_queue(row) for row in rows]

    def _view(self, columns: str, rest: str, arguments: list[object] | None = None) -> list[Row]:
        return self._functions.rows(columns, rest, arguments or ())


def _job(row: Row) -> JobRecord:
    return JobRecord(
        job_id=row[0],
        queue=row[1],
        kind=row[2],
        status=JobStatus(row[3]),
        shade=row[4],
        priority=row[5],
        attempt=row[6],
        max_attempts=row[7],
        token=row[8],
        worker_id=row[9],
        next_attempt_at=utc(row[10]),
        lease_expires_at=utc(row[11]),
        claimed_at=utc(row[12]),
        created_at=row[13].astimezone(UTC),
        finished_at=utc(row[14]),
        cancel_requested=row[15],
        sealed_at=utc(row[16]),
        buffered=row[17],
        solo=row[18],
        dedup_key=row[19],
        timeout=row[20],
        payload=loads(row[21]),
        result=loads(row[22]),
        progress=loads(row[23]),
        meta=loads(row[24]),
        last_error=row[25],
    )


def _attempt(row: Row) -> AttemptRecord:
    return AttemptRecord(
        job_id=row[0],
        token=row[1],
        worker_id=row[2],
        attempt=row[3],
        verb=row[4],
        outcome=row[5],
        started_at=row[6].astimezone(UTC),
        ended_at=row[7].astimezone(UTC),
        error_type=row[8],
        message=row[9],
        traceback=row[10],
    )


def _queue(row: Row) -> QueueRecord:
    return QueueRecord(
        queue=row[0],
        paused_at=utc(row[1]),
        queued=row[2],
        scheduled=row[3],
        retrying=row[4],
        running=row[5],
        oldest_due_at=utc(row[6]),
    )
