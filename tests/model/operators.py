"""What producers and people do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from tenure.errors import Busy, JobUnknown
from tenure.values import (
    Enqueued,
    JobAnswer,
    JobStatus,
    Json,
    NewJob,
    QueueAnswer,
    Verdict,
)
from tests.model.endings import ended
from tests.model.world import Job, Waits, World


def enqueue(
    world: World,
    queue: str,
    kind: str,
    payload: Json = None,
    *,
    job_id: int | None = None,
    priority: int = 5,
    run_at: datetime | None = None,
    delay: timedelta | None = None,
    max_attempts: int = 5,
    dedup_key: str | None = None,
    timeout: timedelta | None = None,
    retry_base: timedelta | None = None,
    retry_cap: timedelta | None = None,
    meta: Json = None,
) -> tuple[World, Enqueued | type[Waits] | type[Busy]]:
    """`job_id` is the number that reality chose, should this make a job; None: the next one."""
    if world.busy:
        return world, Busy
    if dedup_key is not None:
        if (queue, dedup_key) in world.held_keys:
            return world, Waits
        if (holder := world.holder_of_key(queue, dedup_key)) is not None:
            return world, Enqueued(job_id=holder.job_id, created=False)
    if job_id is None:
        job_id = max(world.jobs, default=0) + 1
    if job_id in world.jobs:
        raise ValueError(f"there is a job {job_id} already")
    due = world.now + delay if delay is not None else max(world.now, run_at or world.now)
    job = Job(
        job_id=job_id,
        queue=queue,
        kind=kind,
        payload=payload,
        priority=priority,
        max_attempts=max_attempts,
        token_limit=_token_limit(max_attempts),
        dedup_key=dedup_key,
        timeout=timeout,
        retry_base=retry_base,
        retry_cap=retry_cap,
        meta=meta,
        created_at=world.now,
        next_attempt_at=due,
    )
    return world.changed(job), Enqueued(job_id=job_id, created=True)


def enqueue_many(
    world: World, jobs: Sequence[NewJob], *, job_ids: Sequence[int] | None = None
) -> tuple[World, list[Enqueued] | type[Waits] | type[Busy]]:
    """`job_ids` as for enqueue, one for each of `jobs`."""
    before, answers = world, []
    for place, job in enumerate(jobs):
        given = job._asdict()
        world, answer = enqueue(world, job_id=job_ids[place] if job_ids else None, **given)
        if not isinstance(answer, Enqueued):
            return before, answer
        answers.append(answer)
    return world, answers


def _token_limit(max_attempts: int) -> int:
    return 10 * max_attempts + 100


Answered = JobAnswer | type[JobUnknown] | type[Waits] | type[Busy]


def cancel(world: World, job_id: int) -> tuple[World, Answered]:
    if world.busy:
        return world, Busy
    job = world.job(job_id)
    if job is None:
        return world, JobUnknown
    if job.is_live and world.is_held(job_id):
        return world, Waits
    if job.status is JobStatus.QUEUED:
        world = ended(world, job, JobStatus.CANCELLED)
        return world, _answer(job_id, Verdict.OK, JobStatus.CANCELLED)
    if job.status is not JobStatus.RUNNING:
        already = job.status is JobStatus.CANCELLED
        return world, _answer(job_id, Verdict.ALREADY if already else Verdict.REFUSED, job.status)
    if job.sealed_at is not None:
        return world, _answer(job_id, Verdict.SEALED, job.status)
    if job.cancel_requested:
        return world, _answer(job_id, Verdict.ALREADY, job.status)
    return world.changed(job, cancel_requested=True), _answer(job_id, Verdict.OK, job.status)


def retry(world: World, job_id: int, attempts: int = 1) -> tuple[World, Answered]:
    if world.busy:
        return world, Busy
    job = world.job(job_id)
    if job is None:
        return world, JobUnknown
    if world.is_held(job_id):
        return world, Waits
    if job.status not in (JobStatus.FAILED, JobStatus.CANCELLED):
        return world, _answer(job_id, Verdict.REFUSED, job.status)
    if job.dedup_key is not None:
        if (job.queue, job.dedup_key) in world.held_keys:
            return world, Waits
        if world.holder_of_key(job.queue, job.dedup_key) is not None:
            return world, _answer(job_id, Verdict.DUPLICATE, job.status)
    most = job.attempt + attempts
    world = world.changed(
        job,
        status=JobStatus.QUEUED,
        max_attempts=most,
        token_limit=job.token_limit + _token_limit(most),
        next_attempt_at=world.now,
        worker_id=None,
        claimed_at=None,
        finished_at=None,
        result=None,
    )
    return world, _answer(job_id, Verdict.OK, JobStatus.QUEUED)


def _answer(job_id: int, verdict: Verdict, status: JobStatus) -> JobAnswer:
    return JobAnswer(job_id=job_id, verdict=verdict, status=status, holder_pid=None)


def pause(world: World, queue: str) -> tuple[World, QueueAnswer | type[Busy]]:
    if world.busy:
        return world, Busy
    if queue in world.paused:
        return world, _queue_answer(world, queue, Verdict.ALREADY)
    world = replace(world, paused={**world.paused, queue: world.now})
    return world, _queue_answer(world, queue, Verdict.OK)


def resume(world: World, queue: str) -> tuple[World, QueueAnswer | type[Busy]]:
    if world.busy:
        return world, Busy
    if queue not in world.paused:
        return world, _queue_answer(world, queue, Verdict.ALREADY)
    open_again = {name: since for name, since in world.paused.items() if name != queue}
    world = replace(world, paused=open_again)
    return world, _queue_answer(world, queue, Verdict.OK)


def _queue_answer(world: World, queue: str, verdict: Verdict) -> QueueAnswer:
    return QueueAnswer(
        queue=queue, verdict=verdict, paused_at=world.paused.get(queue), holder_pid=None
    )
