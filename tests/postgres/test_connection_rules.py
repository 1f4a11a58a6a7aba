"""What the client asks of a connection, what it leaves to its owner, and which errors it names."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row, namedtuple_row, scalar_row
from psycopg.types.json import set_json_loads

from tenure.errors import (
    InvalidArgument,
    LeaseLost,
    SchemaOutdated,
    ServerUnavailable,
    WrongIsolation,
)
from tenure.postgres import PostgresControlPlane
from tenure.postgres_call import translated
from tenure.postgres_store import PostgresStore
from tenure.values import Failure, JobLease, LapsedLease, NewJob, Outcome, Verb, Verdict

Call = Callable[[PostgresControlPlane], object]
Connection = psycopg.Connection[Any]

LAPSED = LapsedLease(
    job_id=1, worker_id="ada", token=1, lease_expires_at=datetime(2026, 1, 1, tzinfo=UTC)
)

ALONE: dict[str, Call] = {
    "claim": lambda plane: plane.claim(["default"], "ada"),
    "claim_job": lambda plane: plane.claim_job(1, "ada"),
    "renew": lambda plane: plane.renew("ada", [(1, 1)]),
    "reclaim": lambda plane: plane.reclaim(LAPSED, "bob"),
    "settle": lambda plane: plane.settle("ada", [Outcome(job_id=1, token=1, verb=Verb.COMPLETE)]),
    "sweep": lambda plane: plane.sweep("ada"),
}


@pytest.fixture
def connection(dsn: str) -> Iterator[Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def in_transactions(dsn: str) -> Iterator[Connection]:
    """A connection as psycopg opens it by default."""
    with psycopg.connect(dsn) as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def other(dsn: str) -> Iterator[PostgresControlPlane]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield PostgresControlPlane(connection)


def leased(plane: PostgresControlPlane, **options: Any) -> JobLease:
    job_id = plane.enqueue("default", "work", **options).job_id
    lease = plane.claim_job(job_id, "ada")
    assert lease is not None
    return lease


@pytest.mark.parametrize("verb", ALONE)
def test_a_verb_that_must_be_seen_at_once_refuses_to_open_a_transaction(
    in_transactions: Connection, verb: str
) -> None:
    with pytest.raises(InvalidArgument, match=f"^{verb} needs a connection in autocommit mode"):
        ALONE[verb](PostgresControlPlane(in_transactions))
    assert in_transactions.info.transaction_status is TransactionStatus.IDLE


@pytest.mark.parametrize("verb", ALONE)
def test_a_verb_that_must_be_seen_at_once_refuses_to_join_a_transaction(
    connection: Connection, verb: str
) -> None:
    with (
        connection.transaction(),
        pytest.raises(InvalidArgument, match=f"^{verb} is called inside a transaction"),
    ):
        ALONE[verb](PostgresControlPlane(connection))


@pytest.mark.parametrize("verb", ALONE)
def test_a_verb_that_must_be_seen_at_once_works_in_autocommit_mode(
    connection: Connection, verb: str
) -> None:
    ALONE[verb](PostgresControlPlane(connection))
    assert connection.info.transaction_status is TransactionStatus.IDLE


@pytest.mark.parametrize(
    "enqueue",
    [
        lambda plane: plane.enqueue("default", "work"),
        lambda plane: plane.enqueue_many([NewJob(kind="work")])[0],
    ],
)
def test_a_job_enqueued_in_a_transaction_is_there_when_its_owner_commits(
    in_transactions: Connection, other: PostgresControlPlane, enqueue: Call
) -> None:
    plane = PostgresControlPlane(in_transactions)
    enqueue(plane)
    assert in_transactions.info.transaction_status is TransactionStatus.INTRANS
    assert plane.next_eligible_job_id(["default"]) is not None
    in_transactions.rollback()
    assert other.next_eligible_job_id(["default"]) is None

    enqueue(plane)
    assert other.next_eligible_job_id(["default"]) is None
    in_transactions.commit()
    assert other.next_eligible_job_id(["default"]) is not None


def test_a_guarded_transaction_completes_or_rolls_back_as_one(
    in_transactions: Connection, other: PostgresControlPlane
) -> None:
    lease = leased(other)
    owner = (lease.job_id, "ada", lease.token)
    plane = PostgresControlPlane(in_transactions)

    plane.guard(*owner)
    assert plane.complete(*owner).verdict is Verdict.OK
    in_transactions.rollback()
    assert [held.token for held in other.held("ada")] == [lease.token]

    plane.guard(*owner)
    assert plane.complete(*owner).verdict is Verdict.OK
    in_transactions.commit()
    assert other.held("ada") == []


def test_a_guard_outside_a_transaction_is_refused(connection: Connection) -> None:
    plane = PostgresControlPlane(connection)
    lease = leased(plane)
    with pytest.raises(InvalidArgument, match=r"^guard is called outside a transaction"):
        plane.guard(lease.job_id, "ada", lease.token)
    with connection.transaction():
        plane.guard(lease.job_id, "ada", lease.token)


def decimals(connection: Connection) -> None:
    set_json_loads(partial(json.loads, parse_float=Decimal), connection)


def foreign_settings(connection: Connection) -> None:
    connection.execute("set datestyle = 'SQL, DMY'")
    connection.execute("set intervalstyle = 'iso_8601'")
    connection.execute("set timezone = 'Asia/Tokyo'")
    connection.execute("set search_path = pg_temp")
    connection.execute("set standard_conforming_strings = on")
    connection.execute("set extra_float_digits = 0")


def rows(factory: Any) -> Callable[[Connection], None]:
    def change(connection: Connection) -> None:
        connection.row_factory = factory

    return change


def cursors(connection: Connection) -> None:
    connection.cursor_factory = psycopg.ClientCursor


def prepare_at_once(connection: Connection) -> None:
    connection.prepare_threshold = 0


def never_prepare(connection: Connection) -> None:
    connection.prepare_threshold = None


@pytest.mark.parametrize(
    "change",
    [
        rows(dict_row),
        rows(namedtuple_row),
        rows(scalar_row),
        cursors,
        decimals,
        foreign_settings,
        prepare_at_once,
        never_prepare,
    ],
)
def test_what_the_owner_set_on_the_connection_does_not_matter(
    connection: Connection, change: Callable[[Connection], None]
) -> None:
    plane = PostgresControlPlane(connection)
    options: dict[str, Any] = {
        "payload": {"price": 1.5, "name": "50 % é"},
        "timeout": timedelta(days=40, microseconds=1000),
        "meta": [None],
    }
    expected = leased(plane, **options)
    change(connection)
    for _ in range(7):  # more often than psycopg waits before it prepares
        lease = leased(plane, **options)
    assert (lease.payload, lease.timeout, lease.meta) == (
        options["payload"],
        options["timeout"],
        options["meta"],
    )
    assert type(lease.payload["price"]) is float
    assert lease.lease_expires_at.tzinfo is UTC
    assert lease.lease_expires_at.microsecond % 1000 == 0
    assert (
        timedelta(0) <= lease.lease_expires_at - expected.lease_expires_at < timedelta(seconds=30)
    )
    assert plane.renew("ada", [(lease.job_id, lease.token)])[0].token == lease.token
    failure = Failure(error_type="E", message="100 % é")
    [settled] = plane.settle(
        "ada", [Outcome(job_id=lease.job_id, token=lease.token, verb=Verb.FAIL, failure=failure)]
    )
    assert settled.verdict is Verdict.OK


def test_a_day_is_24_hours_also_when_the_clocks_go_forward(connection: Connection) -> None:
    connection.execute("set timezone = 'Europe/Berlin'")
    connection.execute("update tenure.test_clock set at = '2026-03-28 12:00+00'")
    plane = PostgresControlPlane(connection)
    day = timedelta(days=1)
    plane.enqueue("default", "work", delay=day)
    plane.enqueue_many([NewJob(kind="work", delay=day)])
    due = connection.execute("select next_attempt_at from tenure.job").fetchall()
    assert [row[0] for row in due] == [datetime(2026, 3, 29, 12, tzinfo=UTC)] * 2


def test_an_error_of_the_contract_is_raised_as_its_class(in_transactions: Connection) -> None:
    plane = PostgresControlPlane(in_transactions)
    with pytest.raises(LeaseLost) as lost:
        plane.guard(1, "ada", 1)
    assert lost.value.sqlstate == "TN001"
    assert isinstance(lost.value.__cause__, psycopg.Error)
    assert str(lost.value)[0].islower()


def test_an_argument_that_only_the_server_can_judge_is_refused_by_it(
    connection: Connection,
) -> None:
    in_eleven_years = datetime.now(UTC) + timedelta(days=11 * 366)
    with pytest.raises(InvalidArgument, match="run_at") as refused:
        PostgresControlPlane(connection).enqueue("default", "work", run_at=in_eleven_years)
    assert refused.value.hint


def test_the_isolation_level_is_the_owners_and_some_verbs_refuse_it(
    connection: Connection,
) -> None:
    connection.execute("set default_transaction_isolation = 'repeatable read'")
    plane = PostgresControlPlane(connection)
    plane.enqueue("default", "work")
    with pytest.raises(WrongIsolation, match="READ COMMITTED"):
        plane.claim(["default"], "ada")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("40001", psycopg.errors.SerializationFailure),
        ("40P01", psycopg.errors.DeadlockDetected),
        ("57014", psycopg.errors.QueryCanceled),
        ("55P03", psycopg.errors.LockNotAvailable),
        ("42501", psycopg.errors.InsufficientPrivilege),
        ("42P01", psycopg.errors.UndefinedTable),
        ("25P02", psycopg.errors.InFailedSqlTransaction),
    ],
)
def test_any_other_error_passes_through_unchanged(
    connection: Connection, code: str, error: type[psycopg.Error]
) -> None:
    # As from a function of somebody else's: 42P01 is about tenure only when it names its schema.
    with pytest.raises(error) as raised, translated(connection, "tenure"):
        connection.execute(f"do $$ begin raise exception 'theirs' using errcode = '{code}'; end $$")
    assert raised.value.sqlstate == code


def test_a_database_without_tenure_says_what_to_run(
    empty_database: Callable[[str], str],
) -> None:
    calls: list[Call] = [*ALONE.values(), lambda plane: plane.enqueue("default", "work")]
    with psycopg.connect(empty_database("bare"), autocommit=True) as connection:
        for call in calls:
            with pytest.raises(SchemaOutdated, match="run: tenure migrate"):
                call(PostgresControlPlane(connection))


def test_a_function_that_an_older_schema_lacks_says_what_to_run(connection: Connection) -> None:
    connection.execute("alter function tenure.held rename to held_no_more")
    with pytest.raises(SchemaOutdated, match="in schema tenure"):
        PostgresControlPlane(connection).held("ada")


def test_a_session_that_the_server_ended_is_an_outage(connection: Connection, dsn: str) -> None:
    plane = PostgresControlPlane(connection)
    with psycopg.connect(dsn) as other:
        other.execute("select pg_terminate_backend(%s)", (connection.info.backend_pid,))
    for _ in range(2):
        with pytest.raises(ServerUnavailable) as down:
            plane.claim(["default"], "ada")
        assert "\n" not in str(down.value)


def test_a_server_that_is_not_there_is_an_outage_told_in_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        store = PostgresStore(f"postgresql://u:secret@127.0.0.1:{taken.getsockname()[1]}/app")
        for use in (store.check, store.control_plane, store.records, store.install):
            with pytest.raises(ServerUnavailable, match="cannot connect") as down:
                use()
            assert "\n" not in str(down.value)
            assert "secret" not in str(down.value)


def test_another_kind_of_connection_is_refused_with_the_way_to_get_the_right_one() -> None:
    with pytest.raises(InvalidArgument, match="driver_connection"):
        PostgresControlPlane(object())  # type: ignore[arg-type]


@pytest.mark.parametrize("schema", ["", "x" * 64, "a\0b", "pg_mine"])
def test_a_schema_that_cannot_be_is_refused(connection: Connection, schema: str) -> None:
    with pytest.raises(InvalidArgument, match="schema"):
        PostgresControlPlane(connection, schema=schema)


@pytest.mark.parametrize("schema", ["My-Queue", "100%s", 'a"b', "select", "a.b"])
def test_any_other_schema_is_only_a_name(connection: Connection, schema: str) -> None:
    with pytest.raises(SchemaOutdated) as missing:
        PostgresControlPlane(connection, schema=schema).held("ada")
    assert f"in schema {schema}" in str(missing.value)
