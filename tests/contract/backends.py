"""The databases that the contract is run over, and one clock for all of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Protocol

import psycopg
from psycopg.pq import TransactionStatus

from tenure.control_plane import ControlPlane
from tenure.postgres import PostgresControlPlane
from tenure.postgres_records import PostgresRecords
from tenure.records import Records
from tenure.sqlite import SqliteControlPlane
from tenure.sqlite_records import SqliteRecords

START = datetime(2031, 5, 6, 7, 8, 9, 123_456, tzinfo=UTC)


class Clock:
    """The time everywhere; it stands still until a test moves it, forward only."""

    def __init__(self, tell: Callable[[datetime], None] = lambda now: None) -> None:
        self.now = START
        self._tell = tell
        tell(START)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, by: timedelta) -> None:
        self.set(self.now + by)

    def set(self, now: datetime) -> None:
        self.now = now
        self._tell(now)


@dataclass(frozen=True, slots=True)
class Caller:
    """An open transaction of an application, and the control plane that takes part in it."""

    control_plane: ControlPlane
    write: Callable[[str], object]
    """Adds a row of the application's own."""


class Backend(Protocol):
    """One database, and what a test may do with it."""

    lacks: ClassVar[dict[str, str]]
    """What cannot hold as written, and why; see the marker `needs`."""
    control_plane: ControlPlane
    records: Records
    """Reads what is committed, on a connection of its own."""
    clock: Clock

    def another(self) -> ControlPlane:
        """A control plane over a connection of its own, for another worker."""
        ...

    def transaction(self) -> AbstractContextManager[Caller]:
        """An application's transaction: committed at the end, or rolled back on an error."""
        ...

    def written(self) -> list[str]:
        """The application's own rows that were committed."""
        ...

    def set_attempt(self, job_id: int, attempt: int) -> None:
        """Write over the attempts that a queued job has had."""
        ...


class Pool:
    """Connections to one database that live longer than a test.

    They keep their plans, which cost more than the calls, and lose their settings: a claim
    remembers in one how far it has looked.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._idle: list[psycopg.Connection[Any]] = []

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Any]]:
        connection = self._idle.pop() if self._idle else self._connect()
        try:
            yield connection
        finally:
            if connection.info.transaction_status == TransactionStatus.IDLE:
                connection.execute("reset all")
                self._idle.append(connection)
            else:
                connection.close()

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self._dsn, autocommit=True)

    def close(self) -> None:
        for connection in self._idle:
            connection.close()


class Postgres:
    """A database that the tests share; it is emptied for each."""

    lacks: ClassVar[dict[str, str]] = {}
    EMPTY = """
        create table if not exists application (row text);
        delete from application;
        delete from tenure.job;
        delete from tenure.job_history;
        delete from tenure.attempt;
        delete from tenure.queue;
        delete from tenure.worker;
    """

    def __init__(self, pool: Pool, stack: ExitStack) -> None:
        self._pool = pool
        self._stack = stack
        self._own = stack.enter_context(pool.connection())
        self._own.execute(self.EMPTY)
        self.clock = Clock(self._tell)
        self.control_plane: ControlPlane = self.another()
        self.records: Records = PostgresRecords(self._own)

    def another(self) -> ControlPlane:
        return PostgresControlPlane(self._stack.enter_context(self._pool.connection()))

    @contextmanager
    def transaction(self) -> Iterator[Caller]:
        with self._pool.connection() as connection, connection.transaction():
            yield Caller(
                PostgresControlPlane(connection),
                lambda row: connection.execute("insert into application values (%s)", (row,)),
            )

    def written(self) -> list[str]:
        return [row for [row] in self._own.execute("select row from application")]

    def set_attempt(self, job_id: int, attempt: int) -> None:
        self._own.execute("update tenure.job set attempt = %s where id = %s", (attempt, job_id))

    def _tell(self, now: datetime) -> None:
        self._own.execute("update tenure.test_clock set at = %s", (now,))


class Sqlite:
    """A file for each test."""

    lacks: ClassVar[dict[str, str]] = {
        "row locks": "an open guard is the file's write lock, so it defers every other lease too"
    }

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self._path = path
        self._stack = stack
        self.clock = Clock()
        self.control_plane: ControlPlane = self.another()
        self.records: Records = stack.enter_context(closing(SqliteRecords(path, clock=self.clock)))
        self._own = stack.enter_context(closing(sqlite3.connect(path, isolation_level=None)))
        self._own.execute("create table application (row text)")

    def another(self) -> ControlPlane:
        return self._stack.enter_context(closing(SqliteControlPlane(self._path, clock=self.clock)))

    @contextmanager
    def transaction(self) -> Iterator[Caller]:
        with (
            closing(sqlite3.connect(self._path, isolation_level=None)) as connection,
            connection,
        ):
            connection.execute("begin immediate")
            yield Caller(
                SqliteControlPlane.on(connection, clock=self.clock),
                lambda row: connection.execute("insert into application values (?)", (row,)),
            )

    def written(self) -> list[str]:
        return [row for [row] in self._own.execute("select row from application")]

    def set_attempt(self, job_id: int, attempt: int) -> None:
        self._own.execute("update tenure_job set attempt = ? where id = ?", (attempt, job_id))
