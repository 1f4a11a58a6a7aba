"""The whole of job ownership behind one interface.

Who has a job, for how long, and what may still be written about it is decided by the control
plane, in the statement that makes the change. A caller keeps no authority of its own: every
method that touches a running job shows the fencing token again, and a caller that comes late
is answered `lost`, whatever it believes.

`PostgresControlPlane` and `SqliteControlPlane` satisfy this; tests/contract/ runs the same
cases over both and is the final word on what the methods mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from tenure.values import (
    Enqueued,
    Failure,
    HeldLease,
    JobAnswer,
    JobLease,
    Json,
    LapsedLease,
    NewJob,
    Outcome,
    QueueAnswer,
    Renewal,
    Settled,
    Swept,
)

LEASE_FOR = timedelta(seconds=30)


class ControlPlane(Protocol):
    """Where jobs wait and leases are granted.

    Every method may raise `InvalidArgument` (nothing was written) and `ServerUnavailable`. The
    worker's verbs never raise for lost ownership and never wait for a row that somebody else
    holds: they answer `lost` or `deferred` per job. `guard` alone raises, because voiding the
    caller's transaction is its purpose.
    """

    # Producers.

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
        """Add one job, in the caller's transaction where there is one; never commits it."""
        ...

    def enqueue_many(self, jobs: Sequence[NewJob], *, notify: bool = True) -> list[Enqueued]:
        """Add 1 to 10,000 jobs in one statement; the answers come in the order of `jobs`."""
        ...

    # Workers: getting a lease.

    def next_eligible_job_id(self, queues: Sequence[str]) -> int | None:
        """The job that a claim would take next: a read, which reserves nothing."""
        ...

    def claim_job(
        self, job_id: int, worker_id: str, *, lease_for: timedelta = LEASE_FOR
    ) -> JobLease | None:
        """Lease one candidate; None, at no cost, when somebody else was quicker."""
        ...

    def claim(
        self,
        queues: Sequence[str],
        worker_id: str,
        *,
        max_jobs: int = 1,
        lease_for: timedelta = LEASE_FOR,
        solo: bool = True,
    ) -> list[JobLease]:
        """Lease up to `max_jobs` due jobs, by queue order, priority, due time, id.

        Spends an attempt of each and mints its token. Fewer than asked is not proof that there
        are no more. More than one asked marks the leases buffered. `solo=False` for a worker that
        has a solo job already.
        """
        ...

    def lapsed(self, limit: int = 100) -> list[LapsedLease]:
        """Leases whose time is past, oldest claim first: a read, not a claim."""
        ...

    def reclaim(
        self, lapsed: LapsedLease, new_worker_id: str, *, lease_for: timedelta = LEASE_FOR
    ) -> JobLease | None:
        """Take over one lapsed lease, to decide about the job: new token, same attempt.

        None when the prior owner, token or instant is not exactly as pinned, or the lease has
        not lapsed: a renewal in between wins.
        """
        ...

    # Workers: keeping it.

    def renew(
        self,
        worker_id: str,
        leases: Sequence[tuple[int, int]],
        *,
        lease_for: timedelta = LEASE_FOR,
    ) -> list[Renewal]:
        """Extend the leases given as (job_id, token), and see their cancellations, at once.

        A lapsed lease that nobody reclaimed is renewed. Never beyond a job's timeout.
        """
        ...

    def cancel_requested(self, job_id: int) -> bool:
        """Whether a cancellation of a running job stands; False for an unknown job."""
        ...

    def update_owned(
        self,
        job_id: int,
        worker_id: str,
        token: int,
        *,
        progress: Json = None,
        lease_for: timedelta | None = None,
        require_cancel_not_requested: bool = True,
    ) -> Settled:
        """Note progress (None keeps it), and extend the lease where `lease_for` is given."""
        ...

    def guard(
        self,
        job_id: int,
        worker_id: str,
        token: int,
        *,
        require_cancel_not_requested: bool = True,
        lease_for: timedelta = LEASE_FOR,
    ) -> None:
        """Hold the lease still until the caller's transaction ends.

        First statement of the transaction, outside any savepoint. Raises `LeaseLost`,
        `CancelRequested`, or `Busy` after 2 s; the transaction is void then.
        """
        ...

    def held(self, worker_id: str) -> list[HeldLease]:
        """The leases that the database says a worker has: a read."""
        ...

    # Workers: ending it.

    def seal(self, job_id: int, worker_id: str, token: int, result: Json = None) -> Settled:
        """Record the outcome before completion: from here on a crash completes the job."""
        ...

    def complete(self, job_id: int, worker_id: str, token: int, result: Json = None) -> Settled:
        """End the job for good; a sealed job keeps the result that was sealed."""
        ...

    def fail(
        self,
        job_id: int,
        worker_id: str,
        token: int,
        failure: Failure,
        *,
        delay: timedelta | None = None,
    ) -> Settled:
        """Report a failed attempt: queued again after `delay` (None: backoff), or failed."""
        ...

    def release(
        self,
        job_id: int,
        worker_id: str,
        token: int,
        *,
        started: bool,
        delay: timedelta = timedelta(0),
    ) -> Settled:
        """Give the job back; an attempt that was not started is refunded."""
        ...

    def acknowledge_cancel(self, job_id: int, worker_id: str, token: int) -> Settled:
        """End a job whose cancellation was accepted."""
        ...

    def settle(self, worker_id: str, outcomes: Sequence[Outcome]) -> list[Settled]:
        """End 1 to 1,000 leases at once, each on its own; the same job twice is refused.

        Answers in no particular order.
        """
        ...

    def sweep(self, worker_id: str, limit: int = 100) -> list[Swept]:
        """Decide about lapsed leases: heal, cancel, queue again, or fail."""
        ...

    # Operators.

    def cancel(self, job_id: int) -> JobAnswer:
        """Cancel a queued job now, a running one by request. Raises `JobUnknown`."""
        ...

    def retry(self, job_id: int, attempts: int = 1) -> JobAnswer:
        """Queue a failed or cancelled job again, with `attempts` more. Raises `JobUnknown`."""
        ...

    def pause(self, queue: str) -> QueueAnswer:
        """Stop claims from a queue; running jobs go on."""
        ...

    def resume(self, queue: str) -> QueueAnswer:
        """Allow claims from a queue again."""
        ...
