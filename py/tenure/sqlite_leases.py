"""How a worker gets leases and keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from tenure import limits, sqlite_claim, sqlite_guard, sqlite_lease
from tenure.control_plane import LEASE_FOR
from tenure.errors import InvalidArgument
from tenure.limits import (
    check_bool,
    check_int,
    check_job_id,
    check_lease_for,
    check_queues,
    check_worker_id,
)
from tenure.requests import check_leases, json_text
from tenure.sqlite_base import Caller, owner
from tenure.sqlite_joined import Joined
from tenure.sqlite_refusal import refused
from tenure.sqlite_transaction import Transaction
from tenure.sqlite_values import span
from tenure.values import HeldLease, JobLease, Json, LapsedLease, Renewal, Settled


class SqliteLeases(Caller):
    """The part of `SqliteControlPlane` for leases that go on."""

    def next_eligible_job_id(self, queues: Sequence[str]) -> int | None:
        """The job that a claim would take next: a read, which reserves nothing."""
        names = check_queues(queues)
        return self._read(lambda t: sqlite_claim.next_eligible_job_id(t, names))

    def next_due(self, queues: Sequence[str]) -> datetime | None:
        """When the earliest queued job of these queues is due; None when none waits.

        A moment that is past means a claim now. Jobs of paused queues do not count.
        """
        names = check_queues(queues)
        return self._read(lambda t: sqlite_claim.next_due(t, names))

    def claim_job(
        self, job_id: int, worker_id: str, *, lease_for: timedelta = LEASE_FOR
    ) -> JobLease | None:
        """Lease one candidate; None, at no cost, when somebody else was quicker."""
        check_job_id(job_id)
        check_worker_id(worker_id)
        length = span(check_lease_for(lease_for))
        return self._write_alone(
            "claim_job",
            lambda t: sqlite_claim.claim_job(t, job_id, worker_id, lease_for=length),
        )

    def claim(
        self,
        queues: Sequence[str],
        worker_id: str,
        *,
        max_jobs: int = 1,
        lease_for: timedelta = LEASE_FOR,
        solo: bool = True,
    ) -> list[JobLease]:
        """Lease up to `max_jobs` due jobs, by queue order, priority, due time, id."""
        names = check_queues(queues)
        check_worker_id(worker_id)
        check_int(max_jobs, "max_jobs", 1, limits.MAX_LEASES)
        length = span(check_lease_for(lease_for))
        check_bool(solo, "solo")
        return self._write_alone(
            "claim",
            lambda t: sqlite_claim.claim(
                t, names, worker_id, max_jobs=max_jobs, lease_for=length, solo=solo
            ),
        )

    def lapsed(self, limit: int = 100) -> list[LapsedLease]:
        """Leases whose time is past, oldest claim first: a read, not a claim."""
        check_int(limit, "limit", 1, limits.MAX_LAPSED)
        return self._read(lambda t: sqlite_lease.lapsed(t, limit))

    def reclaim(
        self, lapsed: LapsedLease, new_worker_id: str, *, lease_for: timedelta = LEASE_FOR
    ) -> JobLease | None:
        """Take over one lapsed lease; None when it is not exactly as pinned, or not lapsed."""
        owner(lapsed.job_id, lapsed.worker_id, lapsed.token)
        limits.check_instant(lapsed.lease_expires_at, "lease_expires_at")
        check_worker_id(new_worker_id, "new_worker_id")
        length = span(check_lease_for(lease_for))
        return self._write_alone(
            "reclaim",
            lambda t: sqlite_lease.reclaim(t, lapsed, new_worker_id, lease_for=length),
        )

    def renew(
        self,
        worker_id: str,
        leases: Sequence[tuple[int, int]],
        *,
        lease_for: timedelta = LEASE_FOR,
    ) -> list[Renewal]:
        """Extend the leases given as (job_id, token), and see their cancellations, at once."""
        check_worker_id(worker_id)
        shown = list(zip(*check_leases(leases), strict=True))
        length = span(check_lease_for(lease_for))
        self._refuse_to_join("renew")
        return self._write_or_read(
            lambda t: [sqlite_lease.renew(t, worker_id, *one, lease_for=length) for one in shown],
            lambda t: [sqlite_lease.unrenewed(t, worker_id, *one) for one in shown],
        )

    def cancel_requested(self, job_id: int) -> bool:
        """Whether a cancellation of a running job stands; False for an unknown job."""
        check_job_id(job_id)
        return self._read(lambda t: sqlite_lease.cancel_requested(t, job_id))

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
        shown = owner(job_id, worker_id, token)
        text = json_text(progress, "progress", limits.PROGRESS_BYTES)
        length = None if lease_for is None else span(check_lease_for(lease_for))
        check_bool(require_cancel_not_requested, "require_cancel_not_requested")

        def update(t: Transaction) -> Settled:
            return sqlite_lease.update_owned(
                t,
                worker_id,
                job_id,
                token,
                progress=text,
                lease_for=length,
                anyway=not require_cancel_not_requested,
            ) or refused(t, "update_owned", **shown)

        return self._verdict("update_owned", shown, update)

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

        On a control plane made by `SqliteControlPlane.on`, as the first statement after BEGIN
        IMMEDIATE. Raises `LeaseLost`, `CancelRequested`, or `Busy` after the connection's own
        timeout; the transaction is rolled back then. So that the other leases of the file can be
        renewed, it must be committed within a third of `lease_for`: later, SQLite refuses the
        COMMIT (`sqlite3.DatabaseError: not authorized`), and a verb called in it raises `Busy`
        and rolls it back.
        """
        owner(job_id, worker_id, token)
        check_bool(require_cancel_not_requested, "require_cancel_not_requested")
        check_lease_for(lease_for)
        if not isinstance(self._database, Joined):
            raise InvalidArgument(
                "guard is called outside a transaction, where it protects nothing",
                hint="call it on SqliteControlPlane.on(connection), after BEGIN IMMEDIATE",
            )
        sqlite_guard.guard(
            self._database,
            job_id,
            worker_id,
            token,
            lease_for=lease_for,
            anyway=not require_cancel_not_requested,
        )

    def held(self, worker_id: str) -> list[HeldLease]:
        """The leases that the database says a worker has: a read."""
        check_worker_id(worker_id)
        return self._read(lambda t: sqlite_lease.held(t, worker_id))
