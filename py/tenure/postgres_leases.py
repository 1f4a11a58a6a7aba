"""How a worker gets leases and keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from tenure import limits, postgres_rows
from tenure.control_plane import LEASE_FOR
from tenure.limits import (
    check_bool,
    check_int,
    check_job_id,
    check_lease_for,
    check_queues,
    check_worker_id,
)
from tenure.postgres_base import OWNER, Caller, owner
from tenure.postgres_call import Row, iso, seconds
from tenure.requests import check_leases, json_text
from tenure.values import HeldLease, JobLease, Json, LapsedLease, Renewal, Settled

_FOR = "p_lease_for => %s::interval"


class PostgresLeases(Caller):
    """The part of `PostgresControlPlane` for leases that go on."""

    def next_eligible_job_id(self, queues: Sequence[str]) -> int | None:
        """The job that a claim would take next: a read, which reserves nothing."""
        job_id: int | None = self._functions.value(
            "next_eligible_job_id(p_queues => %s::text[])", (check_queues(queues),)
        )
        return job_id

    def claim_job(
        self, job_id: int, worker_id: str, *, lease_for: timedelta = LEASE_FOR
    ) -> JobLease | None:
        """Lease one candidate; None, at no cost, when somebody else was quicker."""
        arguments = (check_job_id(job_id), check_worker_id(worker_id), _lease(lease_for))
        return _first(
            self._alone(
                "claim_job",
                postgres_rows.LEASE,
                f"p_job_id => %s::bigint, p_worker_id => %s::text, {_FOR}",
                arguments,
            )
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
        rows = self._alone(
            "claim",
            postgres_rows.LEASE,
            "p_queues => %s::text[], p_worker_id => %s::text, p_max_jobs => %s::int,"
            f" {_FOR}, p_solo => %s::bool",
            (
                check_queues(queues),
                check_worker_id(worker_id),
                check_int(max_jobs, "max_jobs", 1, limits.MAX_LEASES),
                _lease(lease_for),
                check_bool(solo, "solo"),
            ),
        )
        return postgres_rows.leases(rows)

    def lapsed(self, limit: int = 100) -> list[LapsedLease]:
        """Leases whose time is past, oldest claim first: a read, not a claim."""
        rows = self._functions.rows(
            postgres_rows.LAPSED,
            "lapsed(p_limit => %s::int)",
            (check_int(limit, "limit", 1, limits.MAX_LAPSED),),
        )
        return [postgres_rows.lapsed(row) for row in rows]

    def reclaim(
        self, lapsed: LapsedLease, new_worker_id: str, *, lease_for: timedelta = LEASE_FOR
    ) -> JobLease | None:
        """Take over one lapsed lease; None when it is not exactly as pinned, or not lapsed."""
        return _first(
            self._alone(
                "reclaim",
                postgres_rows.LEASE,
                f"{OWNER}, p_lease_expires_at => %s::timestamptz,"
                f" p_new_worker_id => %s::text, {_FOR}",
                (
                    *owner(lapsed.job_id, lapsed.worker_id, lapsed.token),
                    iso(limits.check_instant(lapsed.lease_expires_at, "lease_expires_at")),
                    check_worker_id(new_worker_id, "new_worker_id"),
                    _lease(lease_for),
                ),
            )
        )

    def renew(
        self,
        worker_id: str,
        leases: Sequence[tuple[int, int]],
        *,
        lease_for: timedelta = LEASE_FOR,
    ) -> list[Renewal]:
        """Extend the leases given as (job_id, token), and see their cancellations, at once."""
        rows = self._alone(
            "renew",
            postgres_rows.RENEWAL,
            f"p_worker_id => %s::text, p_job_ids => %s::bigint[], p_tokens => %s::bigint[], {_FOR}",
            (check_worker_id(worker_id), *check_leases(leases), _lease(lease_for)),
        )
        return [postgres_rows.renewal(row) for row in rows]

    def cancel_requested(self, job_id: int) -> bool:
        """Whether a cancellation of a running job stands; False for an unknown job."""
        return bool(
            self._functions.value(
                "cancel_requested(p_job_id => %s::bigint)", (check_job_id(job_id),)
            )
        )

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
        return self._verdict(
            f"update_owned({OWNER}, p_progress => %s::jsonb, {_FOR},"
            " p_require_cancel_not_requested => %s::bool)",
            (
                *owner(job_id, worker_id, token),
                json_text(progress, "progress", limits.PROGRESS_BYTES),
                None if lease_for is None else _lease(lease_for),
                check_bool(require_cancel_not_requested, "require_cancel_not_requested"),
            ),
        )

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
        `CancelRequested`, or `Busy` after 2 s; the transaction is void then. Refuses to run
        outside a transaction, where it would protect nothing.
        """
        arguments = (
            *owner(job_id, worker_id, token),
            check_bool(require_cancel_not_requested, "require_cancel_not_requested"),
            _lease(lease_for),
        )
        self._functions.together("guard")
        self._functions.value(
            f"guard({OWNER}, p_require_cancel_not_requested => %s::bool, {_FOR})", arguments
        )

    def held(self, worker_id: str) -> list[HeldLease]:
        """The leases that the database says a worker has: a read."""
        rows = self._functions.rows(
            postgres_rows.HELD, "held(p_worker_id => %s::text)", (check_worker_id(worker_id),)
        )
        return [postgres_rows.held(row) for row in rows]


def _lease(lease_for: timedelta) -> str | None:
    return seconds(check_lease_for(lease_for))


def _first(rows: list[Row]) -> JobLease | None:
    return postgres_rows.lease(rows[0]) if rows else None
