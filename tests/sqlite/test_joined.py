"""Inside a transaction that the application opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from tenure.errors import Busy, InvalidArgument, SchemaOutdated
from tenure.sqlite import SqliteControlPlane
from tenure.sqlite_records import SqliteRecords
from tenure.values import Enqueued, NewJob, Outcome, Verb
from tests.sqlite.conftest import Clock


@pytest.fixture
def connection(control_plane: SqliteControlPlane) -> Iterator[sqlite3.Connection]:
    """As Python makes them: it opens a transaction before the first change."""
    with closing(sqlite3.connect(control_plane.path)) as connection:
        connection.execute("create table application (row text)")
        yield connection


@pytest.fixture
def joined(connection: sqlite3.Connection, clock: Clock) -> SqliteControlPlane:
    return SqliteControlPlane.on(connection, clock=clock)


def test_an_enqueue_before_any_other_change_opens_the_transaction_as_python_would(
    joined: SqliteControlPlane, connection: sqlite3.Connection, records: SqliteRecords
) -> None:
    job_id = joined.enqueue("mail", "send").job_id
    connection.execute("insert into application values ('with it')")
    assert records.job(job_id) is None
    connection.rollback()

    assert records.job(job_id) is None
    joined.enqueue("mail", "send")
    connection.commit()
    assert len(records.jobs()) == 1


def test_an_enqueue_on_a_connection_in_autocommit_mode_stands_alone(
    raw: sqlite3.Connection, clock: Clock, records: SqliteRecords
) -> None:
    job_id = SqliteControlPlane.on(raw, clock=clock).enqueue("mail", "send").job_id

    assert not raw.in_transaction
    assert records.job(job_id) is not None


def test_a_failed_enqueue_of_many_leaves_the_transaction_as_it_was(
    joined: SqliteControlPlane,
    connection: sqlite3.Connection,
    records: SqliteRecords,
    clock: Clock,
) -> None:
    connection.execute("insert into application values ('before')")
    too_far = clock.now.replace(year=clock.now.year + 11)

    with pytest.raises(InvalidArgument, match="run_at"):
        joined.enqueue_many(
            [NewJob(queue="mail", kind="send"), NewJob(queue="mail", kind="send", run_at=too_far)]
        )
    connection.commit()

    assert records.jobs() == []
    assert connection.execute("select row from application").fetchall() == [("before",)]


@pytest.mark.parametrize("factory", [sqlite3.Row, lambda cursor, row: dict(enumerate(row))])
def test_the_connection_s_row_factory_does_not_matter(
    joined: SqliteControlPlane, connection: sqlite3.Connection, factory: Any
) -> None:
    connection.row_factory = factory

    first = joined.enqueue("mail", "send", dedup_key="k")
    second = joined.enqueue("mail", "send", dedup_key="k")

    assert second == Enqueued(job_id=first.job_id, created=False)


def test_what_must_be_a_transaction_of_its_own_is_refused(joined: SqliteControlPlane) -> None:
    outcome = Outcome(job_id=1, token=1, verb=Verb.COMPLETE)
    calls: dict[str, Callable[[], object]] = {
        "claim": lambda: joined.claim(["mail"], "ada"),
        "claim_job": lambda: joined.claim_job(1, "ada"),
        "renew": lambda: joined.renew("ada", [(1, 1)]),
        "settle": lambda: joined.settle("ada", [outcome]),
        "sweep": lambda: joined.sweep("ada"),
        "maintain": lambda: joined.maintain(),
        "data_version": lambda: joined.data_version(),
    }

    for verb, call in calls.items():
        with pytest.raises(InvalidArgument, match=f"^{verb} is called inside a transaction"):
            call()


def test_a_transaction_that_read_too_early_is_told_to_start_again(
    joined: SqliteControlPlane, connection: sqlite3.Connection, control_plane: SqliteControlPlane
) -> None:
    """Its snapshot is old once another writer came in between: no wait would help."""
    connection.isolation_level = None
    connection.execute("begin")
    connection.execute("select count(*) from tenure_job").fetchall()
    control_plane.enqueue("mail", "send")

    with pytest.raises(Busy):
        joined.enqueue("mail", "send")


def test_a_file_without_tenure_is_named_as_such() -> None:
    with (
        closing(sqlite3.connect(":memory:")) as connection,
        pytest.raises(SchemaOutdated, match="no tenure tables"),
    ):
        SqliteControlPlane.on(connection).enqueue("mail", "send")


def test_a_connection_of_another_library_is_refused_by_name() -> None:
    with pytest.raises(InvalidArgument, match=r"builtins\.object"):
        SqliteControlPlane.on(object())  # type: ignore[arg-type]


def test_closing_leaves_the_caller_s_connection_open(
    joined: SqliteControlPlane, connection: sqlite3.Connection
) -> None:
    joined.close()

    assert connection.execute("select 1").fetchone() == (1,)
