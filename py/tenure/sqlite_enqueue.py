"""Adds jobs."""

from __future__ import annotations

from collections.abc import Sequence

from tenure.errors import InvalidArgument
from tenure.limits import TEN_YEARS, stored_dedup_key
from tenure.requests import CheckedJob
from tenure.sqlite_transaction import Transaction
from tenure.sqlite_values import micros, optional_span, span
from tenure.values import Enqueued

INSERT = """
insert into tenure_job
       (queue, kind, payload, priority, next_attempt_at, max_attempts, token_limit, retry_base,
        retry_cap, timeout, meta, dedup_key, created_at)
values (:queue, :kind, :payload, :priority, :next_attempt_at, :max_attempts, :token_limit,
        :retry_base, :retry_cap, :timeout, :meta, :dedup_key, :now)
    on conflict do nothing
returning id
"""

LAST_ID = """
select seq
  from sqlite_sequence
 where name = 'tenure_job'
"""

INSERT_WITHOUT_KEY = """
insert into tenure_job
       (id, queue, kind, payload, priority, next_attempt_at, max_attempts, token_limit, retry_base,
        retry_cap, timeout, meta, created_at)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

HOLDER_OF_KEY = """
select id
  from tenure_job
 where queue = :queue
   and dedup_key = :dedup_key
"""


def enqueue(t: Transaction, job: CheckedJob) -> Enqueued:
    """Insert one job, or find the live one that has its dedup key."""
    key = stored_dedup_key(job.dedup_key)
    inserted = t.one(
        INSERT,
        queue=job.queue,
        kind=job.kind,
        payload=job.payload,
        priority=job.priority,
        next_attempt_at=_due(t, job),
        max_attempts=job.max_attempts,
        token_limit=token_limit(job.max_attempts),
        retry_base=optional_span(job.retry_base),
        retry_cap=optional_span(job.retry_cap),
        timeout=optional_span(job.timeout),
        meta=job.meta,
        dedup_key=key,
        now=t.now,
    )
    if inserted is not None:
        return Enqueued(job_id=inserted["id"], created=True)
    holder = t.one(HOLDER_OF_KEY, queue=job.queue, dedup_key=key)
    assert holder is not None  # the key is the only thing that can be in the way
    return Enqueued(job_id=holder["id"], created=False)


def enqueue_many(t: Transaction, jobs: Sequence[CheckedJob]) -> list[Enqueued]:
    """Insert jobs, or find the live ones that have their dedup keys; the answers in order."""
    if any(job.dedup_key is not None for job in jobs):
        return [enqueue(t, job) for job in jobs]
    # Nobody else inserts before the commit, so what is next is known beforehand.
    last = t.one(LAST_ID)
    first = 1 if last is None else last["seq"] + 1
    t.many(INSERT_WITHOUT_KEY, [_row(t, first + n, job) for n, job in enumerate(jobs)])
    return [Enqueued(first + n, True) for n in range(len(jobs))]


def _row(t: Transaction, job_id: int, job: CheckedJob) -> tuple[object, ...]:
    return (
        job_id,
        job.queue,
        job.kind,
        job.payload,
        job.priority,
        _due(t, job),
        job.max_attempts,
        token_limit(job.max_attempts),
        optional_span(job.retry_base),
        optional_span(job.retry_cap),
        optional_span(job.timeout),
        job.meta,
        t.now,
    )


def token_limit(max_attempts: int) -> int:
    """How far the token may grow, before claiming and giving back in turn ends the job."""
    return 10 * max_attempts + 100


def _due(t: Transaction, job: CheckedJob) -> int:
    if job.delay is not None:
        return t.now + span(job.delay)
    if job.run_at is None:
        return t.now
    run_at = micros(job.run_at)
    if run_at > t.now + span(TEN_YEARS):
        raise InvalidArgument(
            "run_at is more than ten years ahead", hint="Use a time within ten years."
        )
    return max(t.now, run_at)
