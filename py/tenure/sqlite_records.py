"""Jobs, attempts and queues in a SQLite file, as people look at them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence

from tenure import limits
from tenure.codec import loads
from tenure.records import MAX_RECORDS, AttemptRecord, JobRecord, QueueRecord, check_shown
from tenure.sqlite_file import SqliteFile
from tenure.sqlite_schema import install
from tenure.sqlite_transaction import Transaction
from tenure.sqlite_values import Clock, duration, host_clock, moment, optional_moment
from tenure.values import JobResult, JobStatus

JOB = """
select *
  from tenure_jobs
 where id = :job_id
"""

RESULT = """
select j.id, j.token, j.status, iif(j.status = 'completed', j.result, null) as result,
       a.error_type, iif(j.status = 'failed', coalesce(a.message, j.last_error), null) as message
  from tenure_jobs as j
  left join tenure_attempt as a
    on a.job_id = j.id and a.token = j.token and a.verb = 'fail' and j.status = 'failed'
 where j.id = :job_id
"""

# Each table is read from its newest end, and no further than the limit.
NEWEST = """
select id
  from (select id
          from (select id
                  from tenure_job
                 where (:queue is null or queue = :queue)
                   and (:status is null
                        or status = :status
                        or status = 'queued' and :status = iif(attempt > 0, 'retrying',
                             iif(next_attempt_at > :now, 'scheduled', null)))
                 order by id desc
                 limit :limit)
         union all
        select id
          from (select id
                  from tenure_history
                 where (:queue is null or queue = :queue)
                   and (:status is null or status = :status)
                 order by id desc
                 limit :limit))
 order by id desc
 limit :limit
"""

ATTEMPTS = """
select *
  from tenure_attempt
 where job_id = :job_id
 order by token
"""

QUEUES = """
select queue,
       max(paused_at) as paused_at,
       total(status = 'queued' and attempt = 0 and next_attempt_at <= :now) as queued,
       total(status = 'queued' and attempt = 0 and next_attempt_at > :now) as scheduled,
       total(status = 'queued' and attempt > 0) as retrying,
       total(status = 'running') as running,
       min(iif(status = 'queued' and next_attempt_at <= :now, next_attempt_at, null))
         as oldest_due_at
  from (select queue, null as paused_at, status, attempt, next_attempt_at
          from tenure_job
         union all
        select queue, paused_at, null, null, null
          from tenure_queue)
 group by queue
 order by queue
"""


class SqliteRecords:
    """Reads for people; what decides about a job is never read here. Threads: any."""

    def __init__(self, path: str | os.PathLike[str], *, clock: Clock = host_clock) -> None:
        self._file = SqliteFile(path, clock)
        install(self._file)

    def job(self, job_id: int) -> JobRecord | None:
        """The job, live or in the history that is kept."""
        limits.check_job_id(job_id)
        return self._file.read(lambda t: _job(t, job_id))

    def results(self, job_ids: Sequence[int]) -> list[JobResult]:
        """What has come of 1 to 1,000 jobs, in no order; none for an unknown id."""
        limits.check_length(job_ids, "job_ids", limits.MAX_LEASES)

        def read(t: Transaction) -> list[JobResult]:
            rows = [t.one(RESULT, job_id=job_id) for job_id in job_ids]
            return [_result(row) for row in rows if row is not None]

        return self._file.read(read)

    def jobs(
        self,
        *,
        queue: str | None = None,
        status: JobStatus | str | None = None,
        limit: int = 100,
    ) -> list[JobRecord]:
        """The latest 1 to 10,000 jobs by id, newest first; `status` may be a shade."""
        if queue is not None:
            limits.check_name(queue, "queue")
        limits.check_int(limit, "limit", 1, MAX_RECORDS)
        wanted = None if status is None else check_shown(status)

        def newest(t: Transaction) -> list[JobRecord]:
            rows = t.all(NEWEST, queue=queue, status=wanted, limit=limit, now=t.now)
            return [job for row in rows if (job := _job(t, row["id"])) is not None]

        return self._file.read(newest)

    def attempts(self, job_id: int) -> list[AttemptRecord]:
        """The attempts of a job that are kept, the last 20 at most, oldest first."""
        limits.check_job_id(job_id)
        return self._file.read(lambda t: [_attempt(row) for row in t.all(ATTEMPTS, job_id=job_id)])

    def queues(self) -> list[QueueRecord]:
        """Every queue that has a live job or a setting, by name."""
        return self._file.read(lambda t: [_queue(row) for row in t.all(QUEUES, now=t.now)])

    def close(self) -> None:
        self._file.close()


def _job(t: Transaction, job_id: int) -> JobRecord | None:
    row = t.one(JOB, job_id=job_id)
    if row is None:
        return None
    return JobRecord(
        job_id=row["id"],
        queue=row["queue"],
        kind=row["kind"],
        status=JobStatus(row["status"]),
        shade=_shade(row, t.now),
        priority=row["priority"],
        attempt=row["attempt"],
        max_attempts=row["max_attempts"],
        token=row["token"],
        worker_id=row["worker_id"],
        next_attempt_at=optional_moment(row["next_attempt_at"]),
        lease_expires_at=optional_moment(row["lease_expires_at"]),
        claimed_at=optional_moment(row["claimed_at"]),
        created_at=moment(row["created_at"]),
        finished_at=optional_moment(row["finished_at"]),
        cancel_requested=bool(row["cancel_requested"]),
        sealed_at=optional_moment(row["sealed_at"]),
        buffered=bool(row["buffered"]),
        solo=bool(row["solo"]),
        dedup_key=row["dedup_key"],
        timeout=duration(row["timeout"]),
        payload=loads(row["payload"]),
        result=loads(row["result"]),
        progress=loads(row["progress"]),
        meta=loads(row["meta"]),
        last_error=row["last_error"],
    )


def _result(row: sqlite3.Row) -> JobResult:
    return JobResult(
        job_id=row["id"],
        token=row["token"],
        status=JobStatus(row["status"]),
        result=loads(row["result"]),
        error_type=row["error_type"],
        message=row["message"],
    )


def _shade(row: sqlite3.Row, now: int) -> str:
    if row["status"] != JobStatus.QUEUED:
        return str(row["status"])
    if row["attempt"] > 0:
        return "retrying"
    return "scheduled" if row["next_attempt_at"] > now else "queued"


def _attempt(row: sqlite3.Row) -> AttemptRecord:
    return AttemptRecord(
        job_id=row["job_id"],
        token=row["token"],
        worker_id=row["worker_id"],
        attempt=row["attempt"],
        verb=row["verb"],
        outcome=row["outcome"],
        started_at=moment(row["started_at"]),
        ended_at=moment(row["ended_at"]),
        error_type=row["error_type"],
        message=row["message"],
        traceback=row["traceback"],
    )


def _queue(row: sqlite3.Row) -> QueueRecord:
    return QueueRecord(
        queue=row["queue"],
        paused_at=optional_moment(row["paused_at"]),
        queued=int(row["queued"]),
        scheduled=int(row["scheduled"]),
        retrying=int(row["retrying"]),
        running=int(row["running"]),
        oldest_due_at=optional_moment(row["oldest_due_at"]),
    )
