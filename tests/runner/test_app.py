"""The app object: tasks, and enqueueing inside and outside a caller's transaction."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from tenure import InvalidArgument, Job, JobStatus, JobUnknown, Tenure, Verdict
from tests.runner.waiting import status_of


def test_a_decorated_function_stays_callable(sqlite_app: Tenure) -> None:
    @sqlite_app.task
    def double(job: Any) -> int:
        return int(job) * 2

    assert double(4) == 8


def test_the_settings_of_a_task_hold_unless_a_call_says_otherwise(app: Tenure) -> None:
    @app.task(queue="mail", priority=3, max_attempts=2, timeout=timedelta(minutes=1))
    def send(job: Job) -> None: ...

    plain = app.job(app.enqueue(send).job_id)
    by_kind = app.job(app.enqueue("send", priority=0, queue="other").job_id)
    unknown = app.job(app.enqueue("elsewhere").job_id)

    assert plain is not None
    assert (plain.queue, plain.priority, plain.max_attempts) == ("mail", 3, 2)
    assert plain.timeout == timedelta(minutes=1)
    assert by_kind is not None
    assert (by_kind.queue, by_kind.priority, by_kind.max_attempts) == ("other", 0, 2)
    assert unknown is not None
    assert (unknown.queue, unknown.priority, unknown.max_attempts) == ("default", 5, 5)


def test_a_task_that_no_job_could_be_of_is_refused(sqlite_app: Tenure) -> None:
    def work(job: Job) -> None: ...

    sqlite_app.task(work)
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (work, {}, "has a handler already"),
        (work, {"name": "x", "priority": 10}, "priority is out of range"),
        (work, {"name": "x\n"}, "has a blank at its edge"),
        (work, {"name": "x", "timeout": timedelta(0)}, "timeout is out of range"),
        (work, {"name": "x", "slots": "thread"}, "slots is 'thread'"),
    ]
    for handler, options, message in refused:
        with pytest.raises(InvalidArgument, match=message):
            sqlite_app.task(**options)(handler)


def test_a_function_that_is_no_task_is_refused(sqlite_app: Tenure) -> None:
    with pytest.raises(InvalidArgument, match="is no task of this app"):
        sqlite_app.enqueue(lambda job: None)


def test_many_jobs_are_added_all_or_none(app: Tenure) -> None:
    with pytest.raises(InvalidArgument, match=r"jobs\[1\].payload"):
        app.enqueue_many([app.new_job("a"), app.new_job("b", object())])
    assert app.job(1) is None

    added = app.enqueue_many([app.new_job("a", n, dedup_key=f"{n // 2}") for n in range(4)])

    assert [answer.created for answer in added] == [True, False, True, False]


def test_operators_verbs_go_through_the_app(app: Tenure) -> None:
    job_id = app.enqueue("a").job_id

    assert app.cancel(job_id).verdict is Verdict.OK
    assert app.cancel(job_id).verdict is Verdict.ALREADY
    assert app.retry(job_id).verdict is Verdict.OK
    assert status_of(app, job_id) is JobStatus.QUEUED
    with pytest.raises(JobUnknown):
        app.cancel(job_id + 1)


@contextmanager
def sqlalchemy_session(app: Tenure, url: str, **options: Any) -> Iterator[Session]:
    engine = create_engine(url, **options)
    try:
        with Session(engine) as session:
            yield session
    finally:
        engine.dispose()


def url_of(app: Tenure, dsn: str | None) -> str:
    if dsn is None:
        return f"sqlite:///{app.store.path}"  # type: ignore[union-attr]
    return "postgresql+psycopg" + dsn.removeprefix("postgresql")


@pytest.fixture
def url(request: pytest.FixtureRequest, app: Tenure) -> str:
    """The app's database as SQLAlchemy names it."""
    app.enqueue("first, so that a file has its tables")
    postgres = app.store.kind == "postgresql"
    return url_of(app, request.getfixturevalue("dsn") if postgres else None)


def test_a_job_belongs_to_the_transaction_of_a_session(app: Tenure, url: str) -> None:
    with sqlalchemy_session(app, url) as session:
        session.execute(text("create table orders (n int)"))
        session.commit()

        kept = app.enqueue("bill", connection=session)
        session.execute(text("insert into orders values (1)"))
        assert app.job(kept.job_id) is None
        session.commit()

        dropped = app.enqueue("bill", connection=session)
        session.execute(text("insert into orders values (2)"))
        session.rollback()

        orders = session.execute(text("select n from orders")).scalars().all()
    assert status_of(app, kept.job_id) is JobStatus.QUEUED
    assert app.job(dropped.job_id) is None or dropped.job_id == kept.job_id
    assert orders == [1]


def test_a_job_enqueued_first_on_a_connection_is_committed_with_it(app: Tenure, url: str) -> None:
    engine = create_engine(url)
    with engine.connect() as connection:
        job_id = app.enqueue("bill", connection=connection).job_id
        connection.commit()
    engine.dispose()

    assert status_of(app, job_id) is JobStatus.QUEUED


def test_a_connection_that_commits_by_itself_is_refused(
    app: Tenure, url: str, request: pytest.FixtureRequest
) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, pytest.raises(InvalidArgument, match="none to join"):
        app.enqueue("bill", connection=connection)
    engine.dispose()


def test_a_job_joins_a_psycopg_transaction(postgres_app: Tenure, dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        rolled_back = postgres_app.enqueue("a", connection=connection)
        connection.rollback()
        kept = postgres_app.enqueue("a", connection=connection)
    with psycopg.connect(dsn, autocommit=True) as connection:
        with pytest.raises(InvalidArgument, match="none to join"):
            postgres_app.enqueue("a", connection=connection)
        with connection.transaction():
            inside = postgres_app.enqueue("a", connection=connection)

    assert postgres_app.job(rolled_back.job_id) is None
    assert postgres_app.job(kept.job_id) is not None
    assert postgres_app.job(inside.job_id) is not None


def test_a_job_joins_a_sqlite_transaction(sqlite_app: Tenure, tmp_path: Path) -> None:
    sqlite_app.install()
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        sqlite_app.enqueue("a", connection=connection)
        connection.rollback()
        kept = sqlite_app.enqueue("b", connection=connection)
        connection.commit()
        connection.isolation_level = None
        with pytest.raises(InvalidArgument, match="none to join"):
            sqlite_app.enqueue("a", connection=connection)

    record = sqlite_app.job(kept.job_id)
    assert record is not None
    assert record.kind == "b"


def test_a_connection_of_another_kind_is_refused(sqlite_app: Tenure, dsn: str) -> None:
    with (
        psycopg.connect(dsn) as connection,
        pytest.raises(InvalidArgument, match=r"sqlite store .* psycopg.Connection"),
    ):
        sqlite_app.enqueue("a", connection=connection)


def test_threads_share_an_app(app: Tenure) -> None:
    app.install()
    together = threading.Barrier(8)

    def add(n: int) -> int:
        together.wait()
        return app.enqueue("a", n).job_id

    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(add, range(8)))

    assert len(ids) == 8


def test_a_forked_child_enqueues_over_connections_of_its_own(app: Tenure) -> None:
    before = app.enqueue("parent").job_id
    child = os.fork()
    if child == 0:
        try:
            app.enqueue("child", dedup_key="from the child")
            app.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)

    again = app.enqueue("child", dedup_key="from the child")

    assert not again.created
    assert again.job_id > before


def test_a_connection_that_died_while_idle_is_never_seen_by_the_caller(
    postgres_app: Tenure, dsn: str
) -> None:
    postgres_app.enqueue("a")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
            " where application_name = 'tenure' and datname = current_database()"
        )

    assert postgres_app.enqueue("a").created
