"""O48: a job enqueued in the caller's transaction exists if and only if that commits."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from tenure import AsyncTenure, InvalidArgument, Job, JobStatus, Tenure
from tests.runner.conftest import Start
from tests.runner.waiting import ends, eventually

INSERT = "insert into orders values (1)"


def target(app: Tenure) -> str:
    return str(app.store.dsn if app.store.kind == "postgresql" else app.store.path)  # type: ignore[union-attr]


def url(app: Tenure) -> str:
    if app.store.kind == "sqlite":
        return f"sqlite:///{target(app)}"
    return "postgresql+psycopg" + target(app).removeprefix("postgresql")


@dataclass
class Calling:
    """A caller's connection, and how it does what every caller can."""

    connection: Any
    execute: Callable[[str], Any]
    savepoint: Callable[[], Any]


@contextmanager
def of_driver(app: Tenure) -> Iterator[Calling]:
    if app.store.kind == "sqlite":
        with closing(sqlite3.connect(target(app))) as file:
            yield Calling(file, file.execute, lambda: sqlite_savepoint(file))
    else:
        with psycopg.connect(target(app)) as connection:
            yield Calling(connection, connection.execute, connection.transaction)


@contextmanager
def sqlite_savepoint(file: sqlite3.Connection) -> Iterator[None]:
    file.execute("savepoint callers")
    try:
        yield
    except BaseException:
        file.execute("rollback to callers")
        raise
    finally:
        file.execute("release callers")


@contextmanager
def of_sqlalchemy_connection(app: Tenure) -> Iterator[Calling]:
    engine = create_engine(url(app))
    with engine.connect() as connection:
        yield Calling(
            connection, lambda sql: connection.execute(text(sql)), connection.begin_nested
        )
    engine.dispose()


@contextmanager
def of_session(app: Tenure) -> Iterator[Calling]:
    engine = create_engine(url(app))
    with Session(engine) as session:
        yield Calling(session, lambda sql: session.execute(text(sql)), session.begin_nested)
    engine.dispose()


@contextmanager
def of_scoped_session(app: Tenure) -> Iterator[Calling]:
    engine = create_engine(url(app))
    session = scoped_session(sessionmaker(engine))
    yield Calling(session, lambda sql: session.execute(text(sql)), session.begin_nested)
    session.remove()
    engine.dispose()


CALLERS = [of_driver, of_sqlalchemy_connection, of_session, of_scoped_session]


class _Undone(Exception):
    """Ends a savepoint."""


@pytest.fixture
def done(app: Tenure) -> list[Any]:
    """The payloads of the jobs that ran."""
    ran: list[Any] = []

    @app.task
    def work(job: Job) -> None:
        ran.append(job.payload)

    app.install()
    if app.store.kind == "sqlite":
        with closing(sqlite3.connect(target(app))) as file:
            file.execute("create table orders (n int)")
    else:
        with psycopg.connect(target(app)) as connection:
            connection.execute("create table orders (n int)")
    return ran


def orders(app: Tenure) -> int:
    with of_driver(app) as caller:
        return int(caller.execute("select count(*) from orders").fetchone()[0])


@pytest.mark.parametrize("calling", CALLERS)
def test_a_job_starts_at_once_after_the_commit_and_not_before(
    app: Tenure, done: list[Any], start: Start, calling: Any
) -> None:
    """O48"""
    app.enqueue("work", "before")
    start()
    eventually(lambda: done == ["before"], "the runner is idle")

    with calling(app) as caller:
        caller.execute(INSERT)
        handle = app.enqueue("work", "kept", connection=caller.connection)
        assert app.job(handle.job_id) is None
        assert done == ["before"]
        caller.connection.commit()
        ends(app, handle.job_id, JobStatus.COMPLETED)

    assert done == ["before", "kept"]
    assert orders(app) == 1


@pytest.mark.parametrize("calling", CALLERS)
def test_a_job_goes_with_the_rollback_of_its_transaction(
    app: Tenure, done: list[Any], calling: Any
) -> None:
    """O48"""
    with calling(app) as caller:
        app.enqueue("work", "dropped", connection=caller.connection)
        caller.execute(INSERT)
        caller.connection.rollback()
    app.worker().run_until_idle()

    assert done == []
    assert orders(app) == 0


@pytest.mark.parametrize("calling", CALLERS)
def test_a_job_goes_with_the_rollback_of_its_savepoint(
    app: Tenure, done: list[Any], calling: Any
) -> None:
    """O48"""
    with calling(app) as caller:
        caller.execute(INSERT)
        with suppress(_Undone), caller.savepoint():
            app.enqueue("work", "dropped", connection=caller.connection)
            raise _Undone
        with caller.savepoint():
            jobs = [app.new_job("work", "kept"), app.new_job("work", "too")]
            app.enqueue_many(jobs, connection=caller.connection)
        caller.connection.commit()
    app.worker(slots=1).run_until_idle()

    assert done == ["kept", "too"]
    assert orders(app) == 1


def test_a_connection_in_autocommit_is_joined_inside_a_transaction_only(
    postgres_app: Tenure, dsn: str
) -> None:
    """O48"""
    with psycopg.connect(dsn, autocommit=True) as connection:
        with pytest.raises(InvalidArgument, match="none to join"):
            postgres_app.enqueue("work", connection=connection)
        with suppress(_Undone), connection.transaction():
            postgres_app.enqueue("work", connection=connection)
            raise _Undone
        assert connection.execute("select count(*) from tenure.jobs").fetchone() == (0,)


@pytest.mark.parametrize("what", [object(), "postgresql://", create_engine("sqlite://")])
def test_what_is_no_connection_is_refused(app: Tenure, what: Any) -> None:
    """O48"""
    message = f"a job of a {app.store.kind} store cannot be written over a"
    with pytest.raises(InvalidArgument, match=message):
        app.enqueue("work", connection=what)
    with pytest.raises(InvalidArgument, match=message):
        asyncio.run(AsyncTenure(app).enqueue("work", connection=what))


@asynccontextmanager
async def of_async_driver(app: Tenure) -> AsyncIterator[Calling]:
    async with await psycopg.AsyncConnection.connect(target(app)) as connection:
        yield Calling(connection, connection.execute, connection.transaction)


@asynccontextmanager
async def of_async_session(app: Tenure) -> AsyncIterator[Calling]:
    engine = create_async_engine(url(app))
    async with AsyncSession(engine) as session:
        yield Calling(session, lambda sql: session.execute(text(sql)), session.begin_nested)
    await engine.dispose()


@asynccontextmanager
async def of_async_connection(app: Tenure) -> AsyncIterator[Calling]:
    engine = create_async_engine(url(app))
    async with engine.connect() as connection:
        yield Calling(
            connection, lambda sql: connection.execute(text(sql)), connection.begin_nested
        )
    await engine.dispose()


ASYNC_CALLERS = [of_async_driver, of_async_session, of_async_connection]


@pytest.fixture
def async_done(postgres_app: Tenure, dsn: str) -> list[Any]:
    ran: list[Any] = []

    @postgres_app.task
    def work(job: Job) -> None:
        ran.append(job.payload)

    with psycopg.connect(dsn) as connection:
        connection.execute("create table orders (n int)")
    return ran


@pytest.mark.parametrize("calling", ASYNC_CALLERS)
def test_an_asyncio_callers_job_starts_at_once_after_the_commit(
    postgres_app: Tenure, async_done: list[Any], start: Start, calling: Any
) -> None:
    """O48"""
    postgres_app.enqueue("work", "before")
    start(postgres_app)
    eventually(lambda: async_done == ["before"], "the runner is idle")

    async def main() -> None:
        async with AsyncTenure(postgres_app) as jobs, calling(postgres_app) as caller:
            await caller.execute(INSERT)
            handle = await jobs.enqueue("work", "kept", connection=caller.connection)
            assert await jobs.job(handle.job_id) is None
            await caller.connection.commit()
            assert await handle.result(timeout=15) is None

    asyncio.run(main())
    assert async_done == ["before", "kept"]


@pytest.mark.parametrize("calling", ASYNC_CALLERS)
def test_an_asyncio_callers_job_goes_with_either_rollback(
    postgres_app: Tenure, async_done: list[Any], calling: Any
) -> None:
    """O48"""

    async def main() -> None:
        async with AsyncTenure(postgres_app) as jobs, calling(postgres_app) as caller:
            await jobs.enqueue("work", "dropped", connection=caller.connection)
            await caller.connection.rollback()
            with suppress(_Undone):
                async with caller.savepoint():
                    await jobs.enqueue("work", "dropped too", connection=caller.connection)
                    raise _Undone
            several = [jobs.new_job("work", n) for n in range(3)]
            added = await jobs.enqueue_many(several, connection=caller.connection)
            assert [handle.created for handle in added] == [True] * 3
            await caller.connection.commit()

    asyncio.run(main())
    postgres_app.worker(slots=1).run_until_idle()
    assert async_done == [0, 1, 2]


def test_each_app_refuses_the_others_connections(postgres_app: Tenure, dsn: str) -> None:
    """O48"""

    async def main() -> None:
        jobs = AsyncTenure(postgres_app)
        async with await psycopg.AsyncConnection.connect(dsn) as theirs:
            with pytest.raises(InvalidArgument, match="an async connection is for AsyncTenure"):
                postgres_app.enqueue("work", connection=theirs)
            await theirs.set_autocommit(True)
            with pytest.raises(InvalidArgument, match="none to join"):
                await jobs.enqueue("work", connection=theirs)
        with (
            psycopg.connect(dsn) as ours,
            pytest.raises(InvalidArgument, match="any other for Tenure"),
        ):
            await jobs.enqueue("work", connection=ours)

    asyncio.run(main())


def test_coroutines_join_the_transaction_of_a_sqlite_connection(sqlite_app: Tenure) -> None:
    """O48"""
    sqlite_app.install()

    async def main() -> None:
        jobs = AsyncTenure(sqlite_app)
        with closing(sqlite3.connect(target(sqlite_app))) as file:
            await jobs.enqueue("work", "dropped", connection=file)
            file.rollback()
            many = [jobs.new_job("work", "kept")]
            [kept] = await jobs.enqueue_many(many, connection=file)
            file.commit()
        record = await jobs.job(kept.job_id)
        assert record is not None
        assert record.payload == "kept"
        await jobs.close()

    asyncio.run(main())
