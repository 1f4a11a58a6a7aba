"""The guard of an application's own writes, which is the file's write lock."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import pytest

from tenure.errors import Busy, CancelRequested, InvalidArgument, LeaseLost
from tenure.sqlite import SqliteControlPlane
from tenure.sqlite_records import SqliteRecords
from tenure.values import JobLease, JobStatus, LeaseRenewal, Verdict
from tests.sqlite.conftest import Clock

LEASE_FOR = timedelta(seconds=30)
THIRD = timedelta(seconds=10)
MICROSECOND = timedelta(microseconds=1)


@pytest.fixture
def lease(control_plane: SqliteControlPlane) -> JobLease:
    control_plane.enqueue("mail", "send")
    [lease] = control_plane.claim(["mail"], "ada", lease_for=LEASE_FOR)
    return lease


@pytest.fixture
def connection(raw: sqlite3.Connection) -> sqlite3.Connection:
    raw.execute("create table application (row text)")
    return raw


@pytest.fixture
def guarded(connection: sqlite3.Connection, clock: Clock) -> SqliteControlPlane:
    return SqliteControlPlane.on(connection, clock=clock)


@pytest.fixture
def lock_seen(control_plane: SqliteControlPlane) -> Iterator[sqlite3.Connection]:
    """Asks whether the write lock is free, and does not wait."""
    with closing(
        sqlite3.connect(control_plane.path, isolation_level=None, timeout=0)
    ) as connection:
        yield connection


def written(connection: sqlite3.Connection) -> list[str]:
    return [row for [row] in connection.execute("select row from application")]


def test_a_guarded_transaction_keeps_everybody_else_out_until_it_ends(
    guarded: SqliteControlPlane,
    connection: sqlite3.Connection,
    lease: JobLease,
    lock_seen: sqlite3.Connection,
) -> None:
    connection.execute("begin")
    guarded.guard(lease.job_id, "ada", lease.token)

    with pytest.raises(sqlite3.OperationalError, match="locked"):
        lock_seen.execute("begin immediate")

    connection.execute("commit")
    lock_seen.execute("begin immediate")


@pytest.mark.usefixtures("hurried")
def test_an_open_guard_defers_the_owner_on_another_connection(
    control_plane: SqliteControlPlane,
    guarded: SqliteControlPlane,
    connection: sqlite3.Connection,
    lease: JobLease,
) -> None:
    connection.execute("begin immediate")
    guarded.guard(lease.job_id, "ada", lease.token)

    [renewal] = control_plane.renew("ada", [(lease.job_id, lease.token)])
    progress = control_plane.update_owned(lease.job_id, "ada", lease.token, progress=1)

    assert renewal.outcome is LeaseRenewal.DEFERRED
    assert progress.verdict is Verdict.DEFERRED
    connection.execute("rollback")


def test_a_guard_extends_the_lease_and_the_job_completes_in_the_same_commit(
    guarded: SqliteControlPlane,
    connection: sqlite3.Connection,
    lease: JobLease,
    clock: Clock,
    records: SqliteRecords,
) -> None:
    clock.advance(THIRD)
    connection.execute("begin immediate")
    guarded.guard(lease.job_id, "ada", lease.token, lease_for=LEASE_FOR)
    connection.execute("insert into application values ('effect')")
    assert guarded.complete(lease.job_id, "ada", lease.token).verdict is Verdict.OK
    job = records.job(lease.job_id)
    assert job is not None
    assert job.status is JobStatus.RUNNING
    connection.execute("commit")

    job = records.job(lease.job_id)
    assert job is not None
    assert job.status is JobStatus.COMPLETED
    assert written(connection) == ["effect"]


def test_a_guard_for_a_lost_lease_rolls_the_transaction_back(
    guarded: SqliteControlPlane, connection: sqlite3.Connection, lease: JobLease
) -> None:
    connection.execute("begin immediate")
    connection.execute("insert into application values ('stale')")

    with pytest.raises(LeaseLost, match=f"lease {lease.token + 1} on job {lease.job_id} is lost"):
        guarded.guard(lease.job_id, "ada", lease.token + 1)

    assert not connection.in_transaction
    assert written(connection) == []


def test_a_guard_of_a_cancelled_job_rolls_the_transaction_back(
    control_plane: SqliteControlPlane,
    guarded: SqliteControlPlane,
    connection: sqlite3.Connection,
    lease: JobLease,
) -> None:
    control_plane.cancel(lease.job_id)
    connection.execute("begin immediate")

    with pytest.raises(CancelRequested):
        guarded.guard(lease.job_id, "ada", lease.token)

    assert not connection.in_transaction


def test_a_guard_waits_no_longer_than_its_connection_does(
    control_plane: SqliteControlPlane,
    raw: sqlite3.Connection,
    lease: JobLease,
    lock_seen: sqlite3.Connection,
) -> None:
    raw.execute("begin immediate")
    lock_seen.execute("begin")

    with pytest.raises(Busy, match="locked by another writer"):
        SqliteControlPlane.on(lock_seen).guard(lease.job_id, "ada", lease.token)

    assert not lock_seen.in_transaction


def test_a_guard_outside_a_transaction_is_refused(
    control_plane: SqliteControlPlane, guarded: SqliteControlPlane, lease: JobLease
) -> None:
    for plane in (control_plane, guarded):
        with pytest.raises(InvalidArgument, match="outside a transaction"):
            plane.guard(lease.job_id, "ada", lease.token)


def test_a_guarded_transaction_may_take_a_third_of_its_lease(
    guarded: SqliteControlPlane, connection: sqlite3.Connection, lease: JobLease, clock: Clock
) -> None:
    connection.execute("begin immediate")
    guarded.guard(lease.job_id, "ada", lease.token, lease_for=LEASE_FOR)
    connection.execute("insert into application values ('in time')")
    clock.advance(THIRD)
    connection.execute("commit")

    assert written(connection) == ["in time"]


@pytest.mark.parametrize("how", ["execute", "commit"])
def test_a_guarded_transaction_that_took_longer_cannot_be_committed(
    guarded: SqliteControlPlane,
    connection: sqlite3.Connection,
    lease: JobLease,
    clock: Clock,
    how: str,
) -> None:
    connection.execute("begin immediate")  # these two are in the connection's statement cache now
    connection.execute("commit")
    connection.execute("begin immediate")
    guarded.guard(lease.job_id, "ada", lease.token, lease_for=LEASE_FOR)
    connection.execute("insert into application values ('late')")
    clock.advance(THIRD + MICROSECOND)

    with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
        connection.execute("commit") if how == "execute" else connection.commit()

    connection.rollback()
    assert written(connection) == []


def test_a_verb_in_a_guarded_transaction_that_took_longer_rolls_it_back(
    guarded: SqliteControlPlane,
    connection: sqlite3.Connection,
    lease: JobLease,
    clock: Clock,
    records: SqliteRecords,
) -> None:
    connection.execute("begin immediate")
    guarded.guard(lease.job_id, "ada", lease.token, lease_for=LEASE_FOR)
    connection.execute("insert into application values ('late')")
    clock.advance(THIRD + MICROSECOND)

    with pytest.raises(Busy, match="longer than a third of its lease"):
        guarded.complete(lease.job_id, "ada", lease.token)

    assert not connection.in_transaction
    assert written(connection) == []
    job = records.job(lease.job_id)
    assert job is not None
    assert job.status is JobStatus.RUNNING


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_the_bound_ends_with_the_transaction(
    guarded: SqliteControlPlane,
    connection: sqlite3.Connection,
    lease: JobLease,
    clock: Clock,
    end: str,
) -> None:
    connection.execute("begin immediate")
    guarded.guard(lease.job_id, "ada", lease.token)
    connection.execute(end)
    clock.advance(timedelta(hours=1))

    connection.execute("begin immediate")
    guarded.enqueue("mail", "send")
    connection.execute("insert into application values ('another day')")
    connection.execute("commit")

    assert written(connection) == ["another day"]
