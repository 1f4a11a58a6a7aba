"""Holds a lease still for the length of a caller's transaction."""

from __future__ import annotations

import sqlite3
from datetime import timedelta

from tenure.errors import CancelRequested, InvalidArgument, LeaseLost
from tenure.sqlite_joined import Joined
from tenure.sqlite_lease import GUARD, OWNED_LEASE
from tenure.sqlite_transaction import Transaction
from tenure.sqlite_values import Clock, micros, span


def guard(
    joined: Joined, job_id: int, worker_id: str, token: int, *, lease_for: timedelta, anyway: bool
) -> None:
    """Test and extend the lease, or roll the caller's transaction back and raise."""
    if not joined.connection.in_transaction:
        raise InvalidArgument(
            "guard is called outside a transaction, where it protects nothing",
            hint="execute BEGIN IMMEDIATE first",
        )

    def test_and_extend(t: Transaction) -> None:
        owner = {"job_id": job_id, "token": token, "worker_id": worker_id}
        if t.one(GUARD, **owner, until=t.now + span(lease_for), anyway=anyway) is not None:
            return
        if t.one(OWNED_LEASE, **owner) is not None:
            raise CancelRequested(
                f"the cancellation of job {job_id} was requested",
                hint="Stop, and call acknowledge_cancel.",
            )
        raise LeaseLost(
            f"lease {token} on job {job_id} is lost",
            hint="Discard the work: a later lease has the job, or it has ended.",
        )

    try:
        joined.write(test_and_extend)
    except BaseException:
        joined.connection.rollback()
        raise
    joined.bound = Bound(joined.connection, joined.clock, lease_for / 3)


class Bound:
    """The time that a guarded transaction may take, after which SQLite refuses its COMMIT.

    While it is open nobody else can write to the file, so no other lease can be renewed. A
    third of the lease leaves the others the time for one more renewal. SQLite asks before each
    COMMIT that it compiles, in the caller's own thread; an authorizer that the caller had set
    is replaced. The bound ends with the transaction.
    """

    def __init__(self, connection: sqlite3.Connection, clock: Clock, most: timedelta) -> None:
        self._clock = clock
        self._until: int | None = micros(clock()) + span(most)
        connection.set_authorizer(self._authorize)

    @property
    def over(self) -> bool:
        return self._until is not None and micros(self._clock()) > self._until

    def _authorize(self, action: int, what: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_TRANSACTION:
            if what == "COMMIT" and self.over:
                return sqlite3.SQLITE_DENY
            self._until = None
        return sqlite3.SQLITE_OK
