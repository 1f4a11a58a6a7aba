"""What people decide about jobs and queues."""

from __future__ import annotations

from datetime import datetime, timedelta

from tenure.errors import JobUnknown
from tenure.sqlite_history import note_end
from tenure.sqlite_transaction import Transaction
from tenure.sqlite_values import optional_moment, span
from tenure.values import JobAnswer, JobStatus, QueueAnswer, Verdict

KEPT = {
    JobStatus.COMPLETED: timedelta(days=7),
    JobStatus.FAILED: timedelta(days=30),
    JobStatus.CANCELLED: timedelta(days=30),
}

BATCH = 1_000
"""Jobs deleted in one transaction, so that other writers wait for milliseconds only."""

CANCEL_QUEUED = """
delete from tenure_job
 where id = :job_id
   and status = 'queued'
returning *
"""

# What is left once the queued ones are: a running job.
CANCEL_RUNNING = """
update tenure_job
   set cancel_requested = 1
 where id = :job_id
   and cancel_requested = 0
   and sealed_at is null
returning id
"""

LIVE = """
select status, cancel_requested, sealed_at
  from tenure_job
 where id = :job_id
"""

ENDED = """
select status
  from tenure_history
 where id = :job_id
"""

RETRY = """
insert into tenure_job
       (id, queue, kind, payload, priority, next_attempt_at, attempt, max_attempts, token,
        token_limit, progress, retry_base, retry_cap, timeout, meta, dedup_key, created_at,
        last_error)
select id, queue, kind, payload, priority, :now, attempt, attempt + :attempts, token,
       token_limit + 10 * (attempt + :attempts) + 100, progress, retry_base, retry_cap, timeout,
       meta, dedup_key, created_at, last_error
  from tenure_history
 where id = :job_id
   and status in ('failed', 'cancelled')
    on conflict do nothing
returning id
"""

FORGET = """
delete from tenure_history
 where id = :job_id
"""

PAUSE = """
insert into tenure_queue (queue, paused_at)
values (:queue, :now)
    on conflict (queue) do update
   set paused_at = excluded.paused_at
 where paused_at is null
returning paused_at
"""

RESUME = """
update tenure_queue
   set paused_at = null
 where queue = :queue
   and paused_at is not null
returning queue
"""

PAUSED_AT = """
select paused_at
  from tenure_queue
 where queue = :queue
"""

FORGET_OLD = """
delete from tenure_history
 where id in (select id
                from tenure_history
               where status = :status
                 and finished_at < :before
               order by finished_at
               limit :batch)
returning id
"""

FORGET_ATTEMPTS = """
delete from tenure_attempt
 where job_id = :job_id
"""


def cancel(t: Transaction, job_id: int) -> JobAnswer:
    job = t.one(CANCEL_QUEUED, job_id=job_id)
    if job is not None:
        note_end(t, job, JobStatus.CANCELLED)
        return _answer(job_id, Verdict.OK, JobStatus.CANCELLED)
    if t.one(CANCEL_RUNNING, job_id=job_id) is not None:
        return _answer(job_id, Verdict.OK, JobStatus.RUNNING)
    live = t.one(LIVE, job_id=job_id)
    if live is not None:
        verdict = Verdict.ALREADY if live["cancel_requested"] else Verdict.SEALED
        return _answer(job_id, verdict, JobStatus.RUNNING)
    status = _ended(t, job_id)
    verdict = Verdict.ALREADY if status is JobStatus.CANCELLED else Verdict.REFUSED
    return _answer(job_id, verdict, status)


def retry(t: Transaction, job_id: int, attempts: int) -> JobAnswer:
    if t.one(RETRY, job_id=job_id, attempts=attempts, now=t.now) is not None:
        t.all(FORGET, job_id=job_id)
        return _answer(job_id, Verdict.OK, JobStatus.QUEUED)
    live = t.one(LIVE, job_id=job_id)
    if live is not None:
        return _answer(job_id, Verdict.REFUSED, JobStatus(live["status"]))
    status = _ended(t, job_id)
    completed = status is JobStatus.COMPLETED
    return _answer(job_id, Verdict.REFUSED if completed else Verdict.DUPLICATE, status)


def pause(t: Transaction, queue: str) -> QueueAnswer:
    changed = t.one(PAUSE, queue=queue, now=t.now) is not None
    return _queue_answer(t, queue, changed)


def resume(t: Transaction, queue: str) -> QueueAnswer:
    return _queue_answer(t, queue, t.one(RESUME, queue=queue) is not None)


def forget_old(t: Transaction, status: JobStatus) -> int:
    """Delete a batch of finished jobs past their keep time, with their attempts; how many."""
    before = t.now - span(KEPT[status])
    jobs = t.all(FORGET_OLD, status=str(status), before=before, batch=BATCH)
    for job in jobs:
        t.all(FORGET_ATTEMPTS, job_id=job["id"])
    return len(jobs)


def _ended(t: Transaction, job_id: int) -> JobStatus:
    ended = t.one(ENDED, job_id=job_id)
    if ended is None:
        raise JobUnknown(
            f"job {job_id} is unknown",
            hint="Check the id; finished jobs are kept for a limited time.",
        )
    return JobStatus(ended["status"])


def _answer(job_id: int, verdict: Verdict, status: JobStatus) -> JobAnswer:
    return JobAnswer(job_id=job_id, verdict=verdict, status=status, holder_pid=None)


def _queue_answer(t: Transaction, queue: str, changed: bool) -> QueueAnswer:
    row = t.one(PAUSED_AT, queue=queue)
    paused_at: datetime | None = None if row is None else optional_moment(row["paused_at"])
    return QueueAnswer(
        queue=queue,
        verdict=Verdict.OK if changed else Verdict.ALREADY,
        paused_at=paused_at,
        holder_pid=None,
    )
