"""job.transaction(): the handler's rows and the job's completion are one commit."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.orm import Session

from tenure import (
    Busy,
    CancelRequested,
    InvalidArgument,
    Job,
    JobFailed,
    JobStatus,
    LeaseLost,
    Tenure,
    Worker,
)
from tenure.standing import Standing
from tenure.transactions import Transactions
from tests.runner.waiting import eventually, status_of

SECOND = timedelta(seconds=1)
INSERT = "insert into receipts values ('{}')"


@pytest.fixture
def dsn_of(request: pytest.FixtureRequest, app: Tenure) -> str:
    """The app's database, with the application's own table."""
    app.enqueue("first, so that a file has its tables")
    app.cancel(1)
    if app.store.kind == "postgresql":
        dsn: str = request.getfixturevalue("dsn")
        with psycopg.connect(dsn) as connection:
            connection.execute("create table receipts (row text)")
        return dsn
    path = str(app.store.path)  # type: ignore[union-attr]
    with closing(sqlite3.connect(path)) as file:
        file.execute("create table receipts (row text)")
    return path


@pytest.fixture
def receipts(app: Tenure, dsn_of: str) -> Callable[[], list[str]]:
    """The application's rows that are committed."""

    def read() -> list[str]:
        with closing(raw_connection(app, dsn_of)) as connection:
            return [row for (row,) in connection.execute("select row from receipts").fetchall()]

    return read


Receipts = Callable[[], list[str]]


def raw_connection(app: Tenure, dsn: str) -> Any:
    return psycopg.connect(dsn) if app.store.kind == "postgresql" else sqlite3.connect(dsn)


@contextmanager
def engine_of(app: Tenure, dsn: str, **options: Any) -> Iterator[Engine]:
    postgres = app.store.kind == "postgresql"
    url = f"postgresql+psycopg{dsn.removeprefix('postgresql')}" if postgres else f"sqlite:///{dsn}"
    engine = create_engine(url, **options)
    try:
        yield engine
    finally:
        engine.dispose()


def test_rows_and_completion_are_committed_together(app: Tenure, receipts: Receipts) -> None:
    @app.task
    def bill(job: Job) -> str:
        with job.transaction() as connection:
            connection.execute(INSERT.format("a"))
            job.set_result({"receipt": 7})
            assert receipts() == []
        assert receipts() == ["a"]
        assert status_of(app, job.job_id) is JobStatus.COMPLETED
        job.check()
        return "ignored"

    handle = app.enqueue(bill)
    app.worker().run_until_idle()

    assert handle.result(0) == {"receipt": 7}
    assert receipts() == ["a"]


def test_without_set_result_the_result_is_none(app: Tenure, receipts: Receipts) -> None:
    @app.task
    def bill(job: Job) -> str:
        with job.transaction():
            pass
        return "ignored"

    handle = app.enqueue(bill)
    app.worker().run_until_idle()

    assert handle.result(0) is None


def test_what_the_handler_raises_afterwards_changes_nothing(
    app: Tenure, receipts: Receipts
) -> None:
    @app.task
    def bill(job: Job) -> None:
        with job.transaction() as connection:
            connection.execute(INSERT.format("a"))
        raise ValueError("too late")

    handle = app.enqueue(bill)
    app.worker().run_until_idle()

    assert handle.result(0) is None
    assert attempts(app, handle.job_id) == []


def test_an_error_in_the_block_rolls_back_and_fails_the_attempt(
    app: Tenure, receipts: Receipts
) -> None:
    @app.task(retry_base=timedelta(0))
    def bill(job: Job) -> None:
        with job.transaction() as connection:
            connection.execute(INSERT.format(job.attempt))
            if job.attempt == 1:
                raise ValueError("broken")

    handle = app.enqueue(bill)
    app.worker().run_until_idle()

    assert handle.result(0) is None
    assert receipts() == ["2"]
    assert attempts(app, handle.job_id) == ["ValueError"]


def test_a_handler_may_catch_the_error_and_try_again(app: Tenure, receipts: Receipts) -> None:
    @app.task
    def bill(job: Job) -> None:
        for word in ("nonsense", INSERT.format("a")):
            try:
                with job.transaction() as connection:
                    connection.execute(INSERT.format("b") if word == "nonsense" else word)
                    if word == "nonsense":
                        connection.execute(word)
            except (psycopg.Error, sqlite3.Error):
                assert word == "nonsense"

    handle = app.enqueue(bill)
    app.worker().run_until_idle()

    assert handle.result(0) is None
    assert receipts() == ["a"]


def attempts(app: Tenure, job_id: int) -> list[str | None]:
    return [attempt.error_type for attempt in app.store.records().attempts(job_id)]


def run(app: Tenure, handler: Callable[[Job], Any], **options: Any) -> int:
    """Run one job whose worker believes in its lease for a minute, however short that is."""
    job_id = app.enqueue("bill", **options).job_id
    transactions = Transactions(app.store)
    with app.producer.planes.lent() as plane, closing(transactions):
        lease = plane.claim_job(job_id, "ada", lease_for=timedelta(milliseconds=100))
        assert lease is not None
        standing = Standing(lease, sent=time.monotonic(), lease_for=60 * SECOND)
        Worker(plane, {"bill": handler}, transactions=transactions).run(lease, standing)
    return job_id


def is_swept(app: Tenure) -> bool:
    """Wait until the lease has lapsed and a sweep has queued the job again."""
    with app.producer.planes.lent() as plane:
        eventually(lambda: plane.sweep("bob"), "the lease lapsed")
    return True


def test_a_stale_worker_writes_nothing(app: Tenure, receipts: Receipts) -> None:
    seen: list[BaseException] = []

    def bill(job: Job) -> None:
        assert is_swept(app)
        try:
            with job.transaction() as connection:
                connection.execute(INSERT.format("a"))
        except LeaseLost as error:
            seen.append(error)
            raise

    job_id = run(app, bill)

    assert len(seen) == 1
    assert receipts() == []
    assert status_of(app, job_id) is JobStatus.QUEUED


def test_an_open_transaction_keeps_the_job_from_everybody_else(
    postgres_app: Tenure, dsn: str
) -> None:
    def bill(job: Job) -> None:
        with job.transaction(), postgres_app.producer.planes.lent() as plane:
            # The guard made the lease a minute long.
            record = plane.job(job.job_id)
            assert record is not None
            assert plane.sweep("bob") == []
            [renewal] = plane.renew("ada", [(job.job_id, job.token)])
            assert renewal.outcome == "deferred"

    job_id = run(postgres_app, bill)

    assert status_of(postgres_app, job_id) is JobStatus.COMPLETED


def test_ownership_is_proved_again_at_the_end(app: Tenure, dsn_of: str, receipts: Receipts) -> None:
    """The handler gave up the guard by a ROLLBACK, and somebody else took the job."""

    def bill(job: Job) -> None:
        with (
            engine_of(app, dsn_of) as engine,
            Session(engine) as session,
            job.transaction(session),
        ):
            session.rollback()
            assert is_swept(app)
            session.execute(text(INSERT.format("a")))

    job_id = run(app, bill)

    assert receipts() == []
    assert status_of(app, job_id) is JobStatus.QUEUED


def test_an_accepted_cancellation_stops_the_block(app: Tenure, receipts: Receipts) -> None:
    @app.task
    def bill(job: Job) -> None:
        app.cancel(job.job_id)
        with pytest.raises(CancelRequested), job.transaction() as connection:
            connection.execute(INSERT.format("a"))
        job.check()

    handle = app.enqueue(bill)
    app.worker().run_until_idle()

    assert status_of(app, handle.job_id) is JobStatus.CANCELLED
    assert receipts() == []


GIVEN = ["psycopg or sqlite3", "autocommit", "Connection", "Session"]


@contextmanager
def given_connection(app: Tenure, dsn: str, kind: str) -> Iterator[tuple[Any, Any]]:
    """A connection to pass, and how to execute a text on what the block gives."""
    with ExitStack() as stack:
        if kind in GIVEN[:2]:
            connection = stack.enter_context(closing(raw_connection(app, dsn)))
            if kind == "autocommit" and app.store.kind == "postgresql":
                connection.autocommit = True
            elif kind == "autocommit":
                connection.isolation_level = None
            yield connection, lambda given, sql: given.execute(sql)
            return
        engine = stack.enter_context(engine_of(app, dsn))
        opened = engine.connect() if kind == "Connection" else Session(engine)
        yield stack.enter_context(opened), lambda given, sql: given.execute(text(sql))


@pytest.mark.parametrize("kind", GIVEN)
def test_a_connection_of_the_callers_can_be_used(
    app: Tenure, dsn_of: str, receipts: Receipts, kind: str
) -> None:
    @app.task(retry_base=timedelta(0))
    def bill(job: Job) -> None:
        with given_connection(app, dsn_of, kind) as (connection, execute):
            for ends in (False, True):
                try:
                    with job.transaction(connection) as given:
                        assert given is connection
                        execute(given, INSERT.format(ends))
                        job.set_result(kind)
                        if not ends:
                            raise ZeroDivisionError
                except ZeroDivisionError:
                    assert receipts() == []

    handle = app.enqueue(bill)
    app.worker().run_until_idle()

    assert handle.result(0) == kind
    assert receipts() == ["True"]


@pytest.mark.parametrize("kind", GIVEN)
def test_a_connection_with_a_transaction_open_is_refused_and_left_alone(
    app: Tenure, dsn_of: str, receipts: Receipts, kind: str
) -> None:
    @app.task
    def bill(job: Job) -> str:
        with given_connection(app, dsn_of, kind) as (connection, execute):
            if kind == "autocommit":
                execute(connection, "begin")
            execute(connection, INSERT.format("a"))
            with (
                pytest.raises(InvalidArgument, match="has a transaction open already"),
                job.transaction(connection),
            ):
                pytest.fail("the block was entered")
            connection.commit()
        return "done"

    handle = app.enqueue(bill)
    app.worker().run_until_idle()

    assert handle.result(0) == "done"
    assert receipts() == ["a"]


def test_an_engine_that_commits_by_itself_is_refused(postgres_app: Tenure, dsn: str) -> None:
    @postgres_app.task(max_attempts=1)
    def bill(job: Job) -> None:
        with (
            engine_of(postgres_app, dsn, isolation_level="AUTOCOMMIT") as engine,
            engine.connect() as connection,
            job.transaction(connection),
        ):
            pytest.fail("the block was entered")

    handle = postgres_app.enqueue(bill)
    postgres_app.worker().run_until_idle()

    with pytest.raises(JobFailed, match="InvalidArgument: guard is called outside"):
        handle.result(0)


def test_a_commit_inside_the_block_is_refused(app: Tenure, receipts: Receipts) -> None:
    @app.task(max_attempts=1)
    def bill(job: Job) -> None:
        with job.transaction() as connection:
            connection.execute("commit")

    handle = app.enqueue(bill)
    app.worker().run_until_idle()

    with pytest.raises(JobFailed, match="InvalidArgument: the transaction was ended inside"):
        handle.result(0)


def test_what_cannot_end_the_job_is_refused(app: Tenure, receipts: Receipts) -> None:
    refused: list[str] = []

    def tries(what: str, connection: Any, job: Job) -> None:
        with pytest.raises(InvalidArgument) as caught, job.transaction(connection):
            pytest.fail("the block was entered")
        refused.append(f"{what}: {caught.value}")

    @app.task
    def bill(job: Job) -> None:
        tries("strange", object(), job)
        with pytest.raises(InvalidArgument, match=r"result.*is not JSON"), job.transaction():
            job.set_result(object())
        with pytest.raises(InvalidArgument, match=r"outside of job\.transaction"):
            job.set_result(1)
        with job.transaction():
            tries("nested", None, job)
        tries("ended", None, job)

    @app.task
    def seal(job: Job) -> None:
        job.seal()
        tries("sealed", None, job)

    for task in (bill, seal):
        handle = app.enqueue(task)
        app.worker().run_until_idle()
        assert handle.result(0) is None
    with app.producer.planes.lent() as plane:
        job_id = app.enqueue("bill").job_id
        lease = plane.claim_job(job_id, "ada")
        assert lease is not None
        Worker(plane, {"bill": lambda job: tries("no store", None, job)}).run(lease)

    assert [line.split(":")[0] for line in refused] == [
        "strange",
        "nested",
        "ended",
        "sealed",
        "no store",
    ]


def test_what_one_handler_sets_is_not_for_the_next(postgres_app: Tenure) -> None:
    @postgres_app.task
    def look(job: Job) -> None:
        with job.transaction() as connection:
            row = connection.execute("show statement_timeout").fetchone()
            connection.execute("set statement_timeout = '7s'")
            job.set_result([row[0], connection.info.backend_pid])

    handles = [postgres_app.enqueue(look) for _ in range(2)]
    postgres_app.worker(slots=1).run_until_idle()

    (first, pid), (second, same) = (handle.result(0) for handle in handles)
    assert first == second == "0"
    assert pid == same


def test_a_refused_commit_is_raised_as_it_is_and_may_be_tried_again(
    postgres_app: Tenure, dsn: str
) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("create table receipts (n int unique deferrable initially deferred)")
        connection.execute("insert into receipts values (1)")

    @postgres_app.task
    def bill(job: Job) -> None:
        for n in (1, 2):
            try:
                with job.transaction() as connection:
                    connection.execute("insert into receipts values (%s)", [n])
            except psycopg.errors.UniqueViolation:
                assert n == 1

    handle = postgres_app.enqueue(bill)
    postgres_app.worker().run_until_idle()

    assert handle.result(0) is None
    with psycopg.connect(dsn) as connection:
        assert connection.execute("select n from receipts order by n").fetchall() == [(1,), (2,)]


@pytest.mark.parametrize("late", ["before the end", "at COMMIT"])
def test_on_sqlite_a_block_longer_than_a_third_of_the_lease_is_rolled_back(
    sqlite_app: Tenure, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    now = datetime.now(UTC)
    monkeypatch.setattr("tenure.sqlite.host_clock", lambda: now)
    sqlite_app.install()
    with closing(sqlite3.connect(sqlite_app.store.path)) as file:  # type: ignore[union-attr]
        file.execute("create table receipts (row text)")

    @sqlite_app.task(max_attempts=1)
    def bill(job: Job) -> None:
        nonlocal now
        with job.transaction() as connection:
            connection.execute(INSERT.format("a"))
            if late == "before the end":
                now += timedelta(seconds=10, microseconds=1)
            else:
                monkeypatch.setattr("tenure.transactions._complete", lose_time)

    def lose_time(*_: object) -> None:
        nonlocal now
        now += timedelta(seconds=10, microseconds=1)

    handle = sqlite_app.enqueue(bill)
    sqlite_app.worker(lease_for=timedelta(seconds=30)).run_until_idle()

    with pytest.raises(JobFailed, match="Busy: the guarded transaction took longer") as caught:
        handle.result(0)
    assert caught.value.error_type == Busy.__name__
    with closing(sqlite3.connect(sqlite_app.store.path)) as file:  # type: ignore[union-attr]
        assert file.execute("select * from receipts").fetchall() == []
