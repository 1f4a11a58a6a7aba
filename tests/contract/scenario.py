"""Builds jobs in every state that a caller can meet."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tenure.control_plane import ControlPlane
from tenure.values import Failure, JobLease, JobStatus, LapsedLease, Swept, Verdict
from tests.contract.backends import Clock

MILLISECOND = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
LEASE_FOR = timedelta(seconds=30)

BROKEN = Failure(error_type="ValueError", message="broken")
BROKEN_FOR_GOOD = Failure(error_type="ValueError", message="broken", retryable=False)

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a caller of a worker's verb shows for a job, rightly or too late."""

    job_id: int
    worker_id: str
    token: int
    lease_expires_at: datetime


class Scene:
    """A queue of its own and the moves from which the states are made."""

    def __init__(self, control_plane: ControlPlane, clock: Clock) -> None:
        self.control_plane = control_plane
        self.clock = clock
        self.queue = f"scene {next(_numbers)}"

    def enqueue(self, **options: Any) -> int:
        options.setdefault("max_attempts", 3)
        return self.control_plane.enqueue(self.queue, "work", **options).job_id

    def lease(
        self, worker_id: str = "ada", *, job_id: int | None = None, **options: Any
    ) -> JobLease:
        """Lend one job, a new one if none is given, on its own."""
        if job_id is None:
            job_id = self.enqueue(**options)
        lease = self.control_plane.claim_job(job_id, worker_id, lease_for=LEASE_FOR)
        assert lease is not None
        return lease

    def lease_in_batch(self, worker_id: str = "ada", **options: Any) -> JobLease:
        """Lend a new job together with a neighbour, which is completed at once."""
        job_id = self.enqueue(**options)
        self.enqueue()
        ours, neighbour = self.control_plane.claim(
            [self.queue], worker_id, max_jobs=2, lease_for=LEASE_FOR
        )
        assert ours.job_id == job_id
        self.control_plane.complete(neighbour.job_id, worker_id, neighbour.token)
        return ours

    def lapse(self) -> None:
        self.clock.advance(LEASE_FOR)

    def fail(self, lease: JobLease, failure: Failure = BROKEN) -> None:
        self.control_plane.fail(lease.job_id, lease.worker_id, lease.token, failure)

    def fail_with_delay(self, lease: JobLease, delay: timedelta) -> None:
        self.control_plane.fail(lease.job_id, lease.worker_id, lease.token, BROKEN, delay=delay)

    def release(self, lease: JobLease, *, started: bool) -> None:
        self.control_plane.release(lease.job_id, lease.worker_id, lease.token, started=started)

    def complete(self, lease: JobLease) -> None:
        self.control_plane.complete(lease.job_id, lease.worker_id, lease.token, {"done": True})

    def seal(self, lease: JobLease) -> None:
        self.control_plane.seal(lease.job_id, lease.worker_id, lease.token, {"sealed": True})

    def acknowledge(self, lease: JobLease) -> None:
        self.control_plane.acknowledge_cancel(lease.job_id, lease.worker_id, lease.token)

    def cancel(self, lease: JobLease) -> None:
        assert self.control_plane.cancel(lease.job_id).verdict is Verdict.OK

    def sweep(self, lease: JobLease, becomes: JobStatus) -> Swept:
        """Let the lease lapse and sweep; the job must end up as said."""
        self.lapse()
        [swept] = [s for s in self.control_plane.sweep("broom") if s.job_id == lease.job_id]
        assert swept.status is becomes
        return swept

    def reclaim(self, lease: JobLease, new_worker_id: str = "bob") -> JobLease:
        """Let the lease lapse, then hand it to another worker."""
        self.lapse()
        lapsed = LapsedLease(
            job_id=lease.job_id,
            worker_id=lease.worker_id,
            token=lease.token,
            lease_expires_at=lease.lease_expires_at,
        )
        reclaimed = self.control_plane.reclaim(lapsed, new_worker_id, lease_for=LEASE_FOR)
        assert reclaimed is not None
        return reclaimed


STATES: dict[str, Callable[[Scene], Shown]] = {}


def _state(build: Callable[[Scene], JobLease | Shown]) -> Callable[[Scene], Shown]:
    """List a state under its function's name, blanks for underscores."""

    def shown(scene: Scene) -> Shown:
        made = build(scene)
        if isinstance(made, Shown):
            return made
        return Shown(
            job_id=made.job_id,
            worker_id=made.worker_id,
            token=made.token,
            lease_expires_at=made.lease_expires_at,
        )

    STATES[build.__name__.replace("_", " ")] = shown
    return shown


# The caller's lease is the current one.


@_state
def running(scene: Scene) -> JobLease:
    return scene.lease()


@_state
def lapsed(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.lapse()
    return lease


@_state
def running_on_the_last_attempt(scene: Scene) -> JobLease:
    return scene.lease(max_attempts=1)


@_state
def lapsed_on_the_last_attempt(scene: Scene) -> JobLease:
    lease = scene.lease(max_attempts=1)
    scene.lapse()
    return lease


@_state
def timed_out(scene: Scene) -> JobLease:
    lease = scene.lease(timeout=10 * SECOND)
    scene.lapse()
    return lease


@_state
def timed_out_on_the_last_attempt(scene: Scene) -> JobLease:
    lease = scene.lease(timeout=10 * SECOND, max_attempts=1)
    scene.lapse()
    return lease


@_state
def cancel_requested(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.cancel(lease)
    return lease


@_state
def cancel_requested_and_lapsed(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.cancel(lease)
    scene.lapse()
    return lease


@_state
def cancel_requested_on_the_last_attempt_and_lapsed(scene: Scene) -> JobLease:
    lease = scene.lease(max_attempts=1)
    scene.cancel(lease)
    scene.lapse()
    return lease


@_state
def sealed(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.seal(lease)
    return lease


@_state
def sealed_and_lapsed(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.seal(lease)
    scene.lapse()
    return lease


@_state
def sealed_on_the_last_attempt_and_lapsed(scene: Scene) -> JobLease:
    lease = scene.lease(max_attempts=1)
    scene.seal(lease)
    scene.lapse()
    return lease


@_state
def buffered(scene: Scene) -> JobLease:
    return scene.lease_in_batch()


@_state
def buffered_and_lapsed(scene: Scene) -> JobLease:
    lease = scene.lease_in_batch()
    scene.lapse()
    return lease


@_state
def buffered_and_timed_out(scene: Scene) -> JobLease:
    lease = scene.lease_in_batch(timeout=10 * SECOND)
    scene.lapse()
    return lease


@_state
def buffered_on_the_last_attempt(scene: Scene) -> JobLease:
    return scene.lease_in_batch(max_attempts=1)


@_state
def buffered_on_the_last_attempt_and_lapsed(scene: Scene) -> JobLease:
    lease = scene.lease_in_batch(max_attempts=1)
    scene.lapse()
    return lease


@_state
def buffered_sealed_and_lapsed(scene: Scene) -> JobLease:
    lease = scene.lease_in_batch()
    scene.seal(lease)
    scene.lapse()
    return lease


@_state
def buffered_cancel_requested_and_lapsed(scene: Scene) -> JobLease:
    lease = scene.lease_in_batch()
    scene.cancel(lease)
    scene.lapse()
    return lease


@_state
def solo(scene: Scene) -> JobLease:
    lease = scene.lease_in_batch()
    scene.sweep(lease, JobStatus.QUEUED)
    return scene.lease(job_id=lease.job_id)


@_state
def solo_and_lapsed(scene: Scene) -> JobLease:
    lease = scene.lease_in_batch()
    scene.sweep(lease, JobStatus.QUEUED)
    lease = scene.lease(job_id=lease.job_id)
    scene.lapse()
    return lease


@_state
def reclaimed(scene: Scene) -> JobLease:
    return scene.reclaim(scene.lease())


@_state
def reclaimed_and_lapsed(scene: Scene) -> JobLease:
    lease = scene.reclaim(scene.lease())
    scene.lapse()
    return lease


@_state
def reclaimed_on_the_last_attempt(scene: Scene) -> JobLease:
    return scene.reclaim(scene.lease(max_attempts=1))


@_state
def reclaimed_out_of_a_batch(scene: Scene) -> JobLease:
    return scene.reclaim(scene.lease_in_batch())


@_state
def reclaimed_out_of_a_batch_on_the_last_attempt(scene: Scene) -> JobLease:
    return scene.reclaim(scene.lease_in_batch(max_attempts=1))


@_state
def reclaimed_out_of_a_batch_and_lapsed(scene: Scene) -> JobLease:
    lease = scene.reclaim(scene.lease_in_batch())
    scene.lapse()
    return lease


@_state
def reclaimed_while_solo(scene: Scene) -> JobLease:
    lease = scene.lease_in_batch()
    scene.sweep(lease, JobStatus.QUEUED)
    return scene.reclaim(scene.lease(job_id=lease.job_id))


@_state
def reclaimed_with_a_cancel_requested(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.cancel(lease)
    return scene.reclaim(lease)


@_state
def reclaimed_while_sealed(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.seal(lease)
    return scene.reclaim(lease)


# The caller's lease has ended, by the caller's own doing.


@_state
def completed_by_it(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.complete(lease)
    return lease


@_state
def sealed_and_completed_by_it(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.seal(lease)
    scene.complete(lease)
    return lease


@_state
def queued_by_its_fail(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.fail(lease)
    return lease


@_state
def failed_by_it(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.fail(lease, BROKEN_FOR_GOOD)
    return lease


@_state
def failed_by_it_on_the_last_attempt(scene: Scene) -> JobLease:
    lease = scene.lease(max_attempts=1)
    scene.fail(lease)
    return lease


@_state
def released_by_it(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.release(lease, started=True)
    return lease


@_state
def released_by_it_unstarted(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.release(lease, started=False)
    return lease


@_state
def released_by_it_on_the_last_attempt(scene: Scene) -> JobLease:
    lease = scene.lease(max_attempts=1)
    scene.release(lease, started=True)
    return lease


@_state
def cancelled_by_its_acknowledgement(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.cancel(lease)
    scene.acknowledge(lease)
    return lease


@_state
def cancelled_by_its_fail(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.cancel(lease)
    scene.fail(lease)
    return lease


@_state
def cancelled_by_its_release(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.cancel(lease)
    scene.release(lease, started=False)
    return lease


@_state
def failed_by_it_then_lent_to_it_again(scene: Scene) -> JobLease:
    first = scene.lease()
    scene.fail(first)
    scene.clock.advance(MINUTE)
    scene.lease(job_id=first.job_id)
    return first


@_state
def failed_by_it_then_retried(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.fail(lease, BROKEN_FOR_GOOD)
    scene.control_plane.retry(lease.job_id)
    return lease


# The caller's lease has ended, and not by the caller's doing.


@_state
def swept(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.sweep(lease, JobStatus.QUEUED)
    return lease


@_state
def swept_out_of_a_batch(scene: Scene) -> JobLease:
    lease = scene.lease_in_batch()
    scene.sweep(lease, JobStatus.QUEUED)
    return lease


@_state
def swept_on_the_last_attempt(scene: Scene) -> JobLease:
    lease = scene.lease(max_attempts=1)
    scene.sweep(lease, JobStatus.FAILED)
    return lease


@_state
def swept_with_a_cancel_requested(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.cancel(lease)
    scene.sweep(lease, JobStatus.CANCELLED)
    return lease


@_state
def healed(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.seal(lease)
    scene.sweep(lease, JobStatus.COMPLETED)
    return lease


@_state
def swept_then_lent_to_it_again(scene: Scene) -> JobLease:
    first = scene.lease()
    scene.sweep(first, JobStatus.QUEUED)
    scene.clock.advance(MINUTE)
    scene.lease(job_id=first.job_id)
    return first


@_state
def reclaimed_from_it(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.reclaim(lease)
    return lease


@_state
def reclaimed_from_it_and_completed(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.complete(scene.reclaim(lease))
    return lease


@_state
def reclaimed_from_it_and_failed(scene: Scene) -> JobLease:
    lease = scene.lease()
    scene.fail(scene.reclaim(lease), BROKEN_FOR_GOOD)
    return lease


# The caller never had the lease that it shows.


def _under(worker_id: str, lease: JobLease) -> Shown:
    return Shown(
        job_id=lease.job_id,
        worker_id=worker_id,
        token=lease.token,
        lease_expires_at=lease.lease_expires_at,
    )


@_state
def lent_to_somebody_else_under_that_token(scene: Scene) -> Shown:
    return _under("bob", scene.lease())


@_state
def completed_by_somebody_else_under_that_token(scene: Scene) -> Shown:
    lease = scene.lease()
    scene.complete(lease)
    return _under("bob", lease)


@_state
def failed_by_somebody_else_under_that_token(scene: Scene) -> Shown:
    lease = scene.lease()
    scene.fail(lease, BROKEN_FOR_GOOD)
    return _under("bob", lease)


@_state
def healed_for_somebody_else_under_that_token(scene: Scene) -> Shown:
    lease = scene.lease()
    scene.seal(lease)
    scene.sweep(lease, JobStatus.COMPLETED)
    return _under("bob", lease)


def _never_lent(scene: Scene, job_id: int) -> Shown:
    return Shown(
        job_id=job_id, worker_id="ada", token=0, lease_expires_at=scene.clock.now + LEASE_FOR
    )


@_state
def queued(scene: Scene) -> Shown:
    return _never_lent(scene, scene.enqueue())


@_state
def queued_for_later(scene: Scene) -> Shown:
    return _never_lent(scene, scene.enqueue(delay=MINUTE))


@_state
def queued_in_a_paused_queue(scene: Scene) -> Shown:
    scene.control_plane.pause(scene.queue)
    return _never_lent(scene, scene.enqueue())


@_state
def cancelled_while_queued(scene: Scene) -> Shown:
    job_id = scene.enqueue()
    scene.control_plane.cancel(job_id)
    return _never_lent(scene, job_id)


@_state
def unknown(scene: Scene) -> Shown:
    return _never_lent(scene, scene.enqueue() + 1_000_000)
