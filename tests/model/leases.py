"""How a lease is had, kept, handed on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from tenure.errors import Busy, CancelRequested, LeaseLost
from tenure.records import AttemptRecord
from tenure.values import (
    HeldLease,
    JobLease,
    JobStatus,
    Json,
    LapsedLease,
    LeaseRenewal,
    Renewal,
    Settled,
    Verdict,
)
from tests.model.late import late, settled
from tests.model.world import KEPT_ATTEMPTS, LEASE_FOR, Job, Waits, World, lease_end


def next_eligible_job_id(world: World, queues: Sequence[str]) -> tuple[World, int | None]:
    """The first in claim order, whoever holds its row."""
    waiting = replace(world, held=frozenset(), busy=False)
    first = next(iter(_in_claim_order(waiting, queues)), None)
    return world, None if first is None else first.job_id


def claim_job(
    world: World, job_id: int, worker_id: str, *, lease_for: timedelta = LEASE_FOR
) -> tuple[World, JobLease | type[Busy] | None]:
    if world.busy:
        return world, Busy
    job = world.job(job_id)
    if job is None or world.is_held(job_id) or not _may_be_claimed(world, job):
        return world, None
    return _leased(world, job, worker_id, lease_for, buffered=False)


def claim(
    world: World,
    queues: Sequence[str],
    worker_id: str,
    *,
    max_jobs: int = 1,
    lease_for: timedelta = LEASE_FOR,
    solo: bool = True,
) -> tuple[World, list[JobLease] | type[Busy]]:
    if world.busy:
        return world, Busy
    leases: list[JobLease] = []
    for job in _in_claim_order(world, queues):
        if len(leases) == max_jobs:
            break
        if job.solo and not solo:
            continue
        solo = solo and not job.solo
        buffered = max_jobs > 1 and not job.solo
        world, lease = _leased(world, job, worker_id, lease_for, buffered=buffered)
        leases.append(lease)
    return world, leases


def _may_be_claimed(world: World, job: Job) -> bool:
    return job.queue not in world.paused and job.is_due(world.now)


def _in_claim_order(world: World, queues: Sequence[str]) -> list[Job]:
    """Queue order, priority, solo last, due time, id."""
    rank = {queue: place for place, queue in reversed(list(enumerate(queues)))}
    free = [
        job
        for job in world.jobs.values()
        if job.queue in rank and not world.is_held(job.job_id) and _may_be_claimed(world, job)
    ]
    return sorted(
        free, key=lambda j: (rank[j.queue], j.priority, j.solo, j.next_attempt_at, j.job_id)
    )


def _leased(
    world: World, job: Job, worker_id: str, lease_for: timedelta, *, buffered: bool
) -> tuple[World, JobLease]:
    """A claim: the only thing that spends an attempt."""
    return _granted(world, job, worker_id, lease_for, attempt=job.attempt + 1, buffered=buffered)


def _granted(
    world: World, job: Job, worker_id: str, lease_for: timedelta, **changes: object
) -> tuple[World, JobLease]:
    job = replace(
        job,
        status=JobStatus.RUNNING,
        token=job.token + 1,
        worker_id=worker_id,
        claimed_at=world.now,
        lease_expires_at=lease_end(world.now, lease_for, job, world.now),
        next_attempt_at=None,
        due_by=None,
        **changes,  # type: ignore[arg-type]
    )
    lease = JobLease(*[getattr(job, name) for name in JobLease._fields])
    return world.changed(job), lease


def lapsed(world: World, limit: int = 100) -> tuple[World, list[LapsedLease]]:
    return world, [
        LapsedLease(**{name: getattr(job, name) for name in LapsedLease.__dataclass_fields__})
        for job in oldest_lapsed(world)[:limit]
    ]


def oldest_lapsed(world: World) -> list[Job]:
    """Jobs whose lease is past, oldest claim first."""
    past = [job for job in world.jobs.values() if job.has_lapsed(world.now)]
    return sorted(past, key=lambda job: (job.claimed_at, job.job_id))


def reclaim(
    world: World, pinned: LapsedLease, new_worker_id: str, *, lease_for: timedelta = LEASE_FOR
) -> tuple[World, JobLease | type[Busy] | None]:
    if world.busy:
        return world, Busy
    job = world.owned(pinned.job_id, pinned.worker_id, pinned.token)
    if (
        job is None
        or world.is_held(job.job_id)
        or job.lease_expires_at != pinned.lease_expires_at
        or not job.has_lapsed(world.now)
    ):
        return world, None
    job = replace(job, attempts=noted(world, job, "reclaim", "lost"))
    return _granted(world, job, new_worker_id, lease_for, reclaimed=True)


def noted(
    world: World, job: Job, verb: str, outcome: str, **error: str | None
) -> tuple[AttemptRecord, ...]:
    """The attempts of a job with one more: its present lease, which ends here."""
    assert job.worker_id is not None
    assert job.claimed_at is not None
    row = AttemptRecord(
        job_id=job.job_id,
        token=job.token,
        worker_id=job.worker_id,
        attempt=job.attempt,
        verb=verb,
        outcome=outcome,
        started_at=job.claimed_at,
        ended_at=world.now,
        error_type=error.get("error_type"),
        message=error.get("message"),
        traceback=error.get("traceback"),
    )
    return (*job.attempts, row)[-KEPT_ATTEMPTS:]


def renew(
    world: World,
    worker_id: str,
    leases: Sequence[tuple[int, int]],
    *,
    lease_for: timedelta = LEASE_FOR,
) -> tuple[World, list[Renewal]]:
    """Also when lapsed: the token decides, not the clock. One answer for each lease."""
    answers = []
    for job_id, token in dict.fromkeys(leases):
        job = world.owned(job_id, worker_id, token)
        outcome = LeaseRenewal.LOST
        if job is not None:
            outcome = LeaseRenewal.DEFERRED
            if not world.is_held(job_id):
                outcome = LeaseRenewal.RENEWED
                assert job.claimed_at is not None
                end = lease_end(world.now, lease_for, job, job.claimed_at)
                job = replace(job, lease_expires_at=end)
                world = world.changed(job)
        answers.append(
            Renewal(
                job_id=job_id,
                token=token,
                outcome=outcome,
                lease_expires_at=None if job is None else job.lease_expires_at,
                cancel_requested=job is not None and job.cancel_requested,
            )
        )
    return world, answers


def cancel_requested(world: World, job_id: int) -> tuple[World, bool]:
    job = world.job(job_id)
    return world, job is not None and job.cancel_requested


def update_owned(
    world: World,
    job_id: int,
    worker_id: str,
    token: int,
    *,
    progress: Json = None,
    lease_for: timedelta | None = None,
    require_cancel_not_requested: bool = True,
) -> tuple[World, Settled]:
    job = world.owned(job_id, worker_id, token)
    if job is None or world.is_held(job_id):
        return world, late(world, job_id, worker_id, token, "update_owned")
    if job.cancel_requested and require_cancel_not_requested:
        return world, settled(job, token, Verdict.CANCEL_REQUESTED)
    assert job.claimed_at is not None
    end = job.lease_expires_at
    if lease_for is not None:
        end = lease_end(world.now, lease_for, job, job.claimed_at)
    known = job.progress if progress is None else progress
    world = world.changed(job, progress=known, lease_expires_at=end)
    return world, settled(job, token, Verdict.OK)


GuardAnswer = type[LeaseLost] | type[CancelRequested] | type[Busy] | type[Waits] | None


def guard(
    world: World,
    job_id: int,
    worker_id: str,
    token: int,
    *,
    require_cancel_not_requested: bool = True,
    lease_for: timedelta = LEASE_FOR,
) -> tuple[World, GuardAnswer]:
    """None: it passes, and the caller's transaction holds the job to its end."""
    if world.busy:
        return world, Busy
    job = world.owned(job_id, worker_id, token)
    if job is None:
        return world, LeaseLost
    if job.cancel_requested and require_cancel_not_requested:
        # No answer is waited for that is known already.
        return world, CancelRequested
    if world.is_held(job_id):
        return world, Waits
    assert job.claimed_at is not None
    assert job.lease_expires_at is not None
    end = lease_end(world.now, lease_for, job, job.claimed_at)
    return world.changed(job, lease_expires_at=max(end, job.lease_expires_at)), None


def held(world: World, worker_id: str) -> tuple[World, list[HeldLease]]:
    """The leases of a worker, by id; no order is promised."""
    return world, [
        HeldLease(job_id=job_id, token=job.token, lease_expires_at=job.lease_expires_at)
        for job_id, job in sorted(world.jobs.items())
        if job.worker_id == worker_id
        and job.status is JobStatus.RUNNING
        and job.lease_expires_at is not None
    ]
