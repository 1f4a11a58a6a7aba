"""How a lease ends: at its owner's word, or at the sweep's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tenure.errors import Busy
from tenure.values import Failure, JobStatus, Json, Outcome, Settled, Swept, Verb, Verdict
from tests.model.late import late, settled
from tests.model.leases import noted, oldest_lapsed
from tests.model.world import Job, World, backoff, whole_milliseconds

NO_LEASE: dict[str, Any] = {
    "lease_expires_at": None,
    "cancel_requested": False,
    "sealed_at": None,
    "buffered": False,
    "reclaimed": False,
}


def ended(world: World, job: Job, status: JobStatus, **changes: Any) -> World:
    """The job under an end status; `worker_id` stays that of whoever ended it."""
    flags = {**NO_LEASE, "solo": False, "next_attempt_at": None, "due_by": None}
    return world.changed(job, **{**flags, "status": status, "finished_at": world.now, **changes})


def requeued(world: World, job: Job, wait: tuple[timedelta, timedelta], **changes: Any) -> World:
    shortest, longest = wait
    return world.changed(
        job,
        **NO_LEASE,
        status=JobStatus.QUEUED,
        worker_id=None,
        claimed_at=None,
        next_attempt_at=world.now + shortest,
        due_by=None if shortest == longest else world.now + longest,
        **changes,
    )


def seal(
    world: World, job_id: int, worker_id: str, token: int, result: Json = None
) -> tuple[World, Settled]:
    job = world.owned(job_id, worker_id, token)
    if job is None or world.is_held(job_id):
        return world, late(world, job_id, worker_id, token, "seal")
    if job.cancel_requested:
        return world, settled(job, token, Verdict.CANCEL_REQUESTED)
    if job.sealed_at is not None:
        return world, settled(job, token, Verdict.ALREADY)
    return world.changed(job, sealed_at=world.now, result=result), settled(job, token, Verdict.OK)


def complete(
    world: World, job_id: int, worker_id: str, token: int, result: Json = None
) -> tuple[World, Settled]:
    return _end(
        world,
        worker_id,
        Outcome(job_id=job_id, token=token, verb=Verb.COMPLETE, result=result),
    )


def fail(
    world: World,
    job_id: int,
    worker_id: str,
    token: int,
    failure: Failure,
    *,
    delay: timedelta | None = None,
) -> tuple[World, Settled]:
    return _end(
        world,
        worker_id,
        Outcome(job_id=job_id, token=token, verb=Verb.FAIL, failure=failure, delay=delay),
    )


def release(
    world: World,
    job_id: int,
    worker_id: str,
    token: int,
    *,
    started: bool,
    delay: timedelta = timedelta(0),
) -> tuple[World, Settled]:
    return _end(
        world,
        worker_id,
        Outcome(job_id=job_id, token=token, verb=Verb.RELEASE, started=started, delay=delay),
    )


def acknowledge_cancel(
    world: World, job_id: int, worker_id: str, token: int
) -> tuple[World, Settled]:
    return _end(world, worker_id, Outcome(job_id=job_id, token=token, verb=Verb.ACKNOWLEDGE_CANCEL))


def settle(
    world: World, worker_id: str, outcomes: Sequence[Outcome]
) -> tuple[World, list[Settled]]:
    """Each on its own; answers in the order of `outcomes`, though no order is promised."""
    answers = []
    for outcome in outcomes:
        world, answer = _end(world, worker_id, outcome)
        answers.append(answer)
    return world, answers


def _end(world: World, worker_id: str, outcome: Outcome) -> tuple[World, Settled]:
    job = world.owned(outcome.job_id, worker_id, outcome.token)
    if job is None or world.is_held(outcome.job_id):
        return world, late(world, outcome.job_id, worker_id, outcome.token, outcome.verb)
    if (refusal := _refusal(job, outcome.verb)) is not None:
        return world, settled(job, outcome.token, refusal)
    world = _ENDS[outcome.verb](world, job, outcome)
    return world, settled(world.job(job.job_id), outcome.token, Verdict.OK)


def _refusal(job: Job, verb: Verb) -> Verdict | None:
    """What stands in the owner's way."""
    if verb is Verb.COMPLETE:
        return Verdict.CANCEL_REQUESTED if job.cancel_requested else None
    if job.sealed_at is not None:
        return Verdict.SEALED
    if verb is Verb.ACKNOWLEDGE_CANCEL and not job.cancel_requested:
        return Verdict.NOT_REQUESTED
    return None


def _completed(world: World, job: Job, outcome: Outcome) -> World:
    result = outcome.result if job.sealed_at is None else job.result
    return ended(world, job, JobStatus.COMPLETED, result=result)


def _failed(world: World, job: Job, outcome: Outcome) -> World:
    failure = outcome.failure
    assert failure is not None
    if job.cancel_requested or failure.cancel:
        status = JobStatus.CANCELLED
    elif failure.retryable and job.attempt < job.max_attempts:
        status = JobStatus.QUEUED
    else:
        status = JobStatus.FAILED
    how = "cancelled" if status is JobStatus.CANCELLED else "failed"
    changes: dict[str, Any] = {
        "last_error": ": ".join(text for text in (failure.error_type, failure.message) if text),
        "attempts": noted(
            world,
            job,
            "fail",
            how,
            error_type=failure.error_type,
            message=failure.message,
            traceback=failure.traceback,
        ),
    }
    if status is not JobStatus.QUEUED:
        return ended(world, job, status, **changes)
    wait = backoff(job) if outcome.delay is None else (outcome.delay, outcome.delay)
    return requeued(world, job, wait, solo=False, **changes)


def _released(world: World, job: Job, outcome: Outcome) -> World:
    # Of a lease that was taken over nobody knows whether its first owner had started the job,
    # unless it came out of a batch.
    refund = not outcome.started and (job.buffered or not job.reclaimed)
    if job.cancel_requested:
        return ended(
            world,
            job,
            JobStatus.CANCELLED,
            attempts=noted(world, job, "release", "cancelled"),
        )
    attempts = noted(world, job, "release", "released")
    if job.token >= job.token_limit:
        error = f"given back {job.token} times"
        return ended(world, job, JobStatus.FAILED, attempts=attempts, last_error=error)
    if not refund and job.attempt >= job.max_attempts:
        error = "given back on the last attempt"
        return ended(world, job, JobStatus.FAILED, attempts=attempts, last_error=error)
    delay = outcome.delay or timedelta(0)
    return requeued(
        world,
        job,
        (delay, delay),
        attempt=job.attempt - refund,
        solo=not outcome.started and (job.solo or (job.reclaimed and job.buffered)),
        attempts=attempts,
    )


def _acknowledged(world: World, job: Job, outcome: Outcome) -> World:
    attempts = noted(world, job, "acknowledge_cancel", "cancelled")
    return ended(world, job, JobStatus.CANCELLED, attempts=attempts)


_ENDS = {
    Verb.COMPLETE: _completed,
    Verb.FAIL: _failed,
    Verb.RELEASE: _released,
    Verb.ACKNOWLEDGE_CANCEL: _acknowledged,
}


def sweep(world: World, worker_id: str, limit: int = 100) -> tuple[World, list[Swept] | type[Busy]]:
    """Decide about lapsed leases, oldest claim first; rows that are held stay as they are."""
    lapsed = oldest_lapsed(world)
    if world.busy:
        return world, Busy if lapsed else []
    free = [job for job in lapsed if job.job_id not in world.held][:limit]
    answers = []
    for job in free:
        world, outcome = _swept(world, job, worker_id)
        after = world.jobs[job.job_id]
        answers.append(
            Swept(
                job_id=job.job_id,
                token=job.token,
                outcome=outcome,
                status=after.status,
                next_attempt_at=after.next_attempt_at,
            )
        )
    return world, answers


def _swept(world: World, job: Job, worker_id: str) -> tuple[World, str]:
    """The first match of DESIGN 3; each mints a token."""

    def end(status: JobStatus, outcome: str, error: str | None = None) -> tuple[World, str]:
        after = ended(
            world,
            job,
            status,
            token=job.token + 1,
            worker_id=worker_id,
            attempts=noted(world, job, "sweep", outcome),
            last_error=job.last_error if error is None else error,
        )
        return after, outcome

    def queue(outcome: str, wait: tuple[timedelta, timedelta], **changes: Any) -> tuple[World, str]:
        attempts = noted(world, job, "sweep", outcome)
        moved = replace(job, token=job.token + 1, attempts=attempts)
        return requeued(world, moved, wait, **changes), outcome

    if job.sealed_at is not None:
        return end(JobStatus.COMPLETED, "healed")
    if job.cancel_requested:
        return end(JobStatus.CANCELLED, "cancelled")
    if job.buffered and job.token >= job.token_limit:
        return end(JobStatus.FAILED, "lost", f"given back {job.token} times")
    if job.buffered:
        now = timedelta(0), timedelta(0)
        return queue("lost", now, attempt=job.attempt - 1, solo=True)
    outcome, error = ("timed out",) * 2 if _timed_out(job) else ("lost", "lease lapsed")
    if job.attempt >= job.max_attempts:
        return end(JobStatus.FAILED, outcome, f"{error} on the last attempt")
    return queue(outcome, backoff(job), last_error=error)


def _timed_out(job: Job) -> bool:
    if job.timeout is None or job.claimed_at is None or job.lease_expires_at is None:
        return False
    return job.lease_expires_at >= whole_milliseconds(job.claimed_at + job.timeout)
