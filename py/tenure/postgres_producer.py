"""How jobs get into PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from tenure import postgres_rows
from tenure.bulk import batch
from tenure.limits import check_bool
from tenure.postgres_base import Caller
from tenure.postgres_call import Call, Row, iso, seconds
from tenure.requests import check_job
from tenure.values import Enqueued, Json, NewJob


class PostgresProducer(Caller):
    """The producers' part of `PostgresControlPlane`."""

    def enqueue(
        self,
        queue: str,
        kind: str,
        payload: Json = None,
        *,
        priority: int = 5,
        run_at: datetime | None = None,
        delay: timedelta | None = None,
        max_attempts: int = 5,
        dedup_key: str | None = None,
        timeout: timedelta | None = None,
        retry_base: timedelta | None = None,
        retry_cap: timedelta | None = None,
        meta: Json = None,
        notify: bool = True,
    ) -> Enqueued:
        """Add one job, in the caller's transaction where there is one.

        Raises `InvalidArgument`, nothing written. With `notify=False` nobody is woken; call
        `wake` after the commit.
        """
        job = NewJob(
            queue=queue,
            kind=kind,
            payload=payload,
            priority=priority,
            run_at=run_at,
            delay=delay,
            max_attempts=max_attempts,
            dedup_key=dedup_key,
            timeout=timeout,
            retry_base=retry_base,
            retry_cap=retry_cap,
            meta=meta,
        )
        return self._functions.answer(enqueue_call(job, notify=notify))

    def enqueue_many(self, jobs: Sequence[NewJob], *, notify: bool = True) -> list[Enqueued]:
        """Add 1 to 10,000 jobs in one statement; the answers come in the order of `jobs`."""
        return self._functions.answer(enqueue_many_call(jobs, notify=notify))


def enqueue_call(new: NewJob, *, notify: bool) -> Call[Enqueued]:
    """The call that adds one job. Raises `InvalidArgument`."""
    job = check_job(new)
    names = _ALWAYS
    arguments: list[object] = [
        job.queue,
        job.kind,
        job.payload,
        job.priority,
        job.max_attempts,
        check_bool(notify, "notify"),
    ]
    given = (
        iso(job.run_at),
        seconds(job.delay),
        job.dedup_key,
        seconds(job.timeout),
        seconds(job.retry_base),
        seconds(job.retry_cap),
        job.meta,
    )
    for name, value in zip(_OPTIONAL, given, strict=True):
        if value is not None:
            names += name
            arguments.append(value)
    return Call(postgres_rows.ENQUEUED, f"enqueue({names})", arguments, _enqueued)


def enqueue_and_wake_call(new: NewJob, prefix: str) -> Call[tuple[Enqueued, bool]]:
    """As `enqueue_call`, with whether nobody is left to be woken after the commit."""
    call = enqueue_call(new, notify=False)
    woken = f"case when created then {prefix}try_wake(array[%s::text]) else true end"
    return Call(
        f"{call.columns}, {woken}", call.function, (new.queue, *call.arguments), _enqueued_and_woken
    )


_ALWAYS = (
    "p_queue => %s::text, p_kind => %s::text, p_payload => %s::jsonb, p_priority => %s::int,"
    " p_max_attempts => %s::int, p_notify => %s::bool"
)
# Left out where there is none: most jobs have none of these, and each takes time to send.
_OPTIONAL = (
    ", p_run_at => %s::timestamptz",
    ", p_delay => %s::interval",
    ", p_dedup_key => %s::text",
    ", p_timeout => %s::interval",
    ", p_retry_base => %s::interval",
    ", p_retry_cap => %s::interval",
    ", p_meta => %s::jsonb",
)


def _enqueued(rows: list[Row]) -> Enqueued:
    return postgres_rows.enqueued(rows[0])


def _enqueued_and_woken(rows: list[Row]) -> tuple[Enqueued, bool]:
    [(*added, woken)] = rows
    return postgres_rows.enqueued(tuple(added)), bool(woken)


def enqueue_many_call(jobs: Sequence[NewJob], *, notify: bool) -> Call[list[Enqueued]]:
    """The call that adds many jobs, whose answers come in their order."""
    elements, shared = batch(jobs)
    return Call(
        # Not a row for each job, of which the client would make as many tuples.
        "array_agg(job_id order by ordinal)::text, array_agg(ordinal) filter (where not created)",
        "enqueue_many(p_jobs => %s::jsonb, p_notify => %s::bool, p_shared => %s::jsonb)",
        (elements, check_bool(notify, "notify"), shared),
        _enqueued_many,
    )


def _enqueued_many(rows: list[Row]) -> list[Enqueued]:
    [(job_ids, not_created)] = rows
    added = [Enqueued(int(job_id), True) for job_id in job_ids[1:-1].split(",")]
    for ordinal in not_created or ():
        added[ordinal - 1] = Enqueued(added[ordinal - 1].job_id, False)
    return added
