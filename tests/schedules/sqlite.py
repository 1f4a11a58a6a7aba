"""The actors' sessions on SQLite: a control plane each, and a connection for a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tenure import sqlite_file
from tenure.errors import Busy, TenureError
from tenure.sqlite import SqliteControlPlane
from tests.schedules import rows
from tests.schedules.rows import EPOCH, Row
from tests.schedules.stage import REFUSED, SKIPPED, Call


@contextmanager
def impatient() -> Iterator[None]:
    """Nobody waits for the file: it is one thread here that takes all the steps."""
    kept = sqlite_file.PATIENCE, sqlite_file.WORKER_PATIENCE, sqlite_file.PRAGMAS
    sqlite_file.PATIENCE = sqlite_file.WORKER_PATIENCE = timedelta(0)
    sqlite_file.PRAGMAS = ("pragma busy_timeout = 0", "pragma synchronous = off")
    try:
        yield
    finally:
        sqlite_file.PATIENCE, sqlite_file.WORKER_PATIENCE, sqlite_file.PRAGMAS = kept


class Sqlite:
    """One file; use it inside `impatient`."""

    name = "sqlite"
    holds_rows = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._now = EPOCH
        self._planes: dict[str, SqliteControlPlane] = {}
        self._open: dict[str, sqlite3.Connection] = {}
        self._joined: dict[str, SqliteControlPlane] = {}
        """Of each actor's last transaction."""
        self._plane("watcher")
        self._own = sqlite3.connect(path, isolation_level=None)
        self._own.execute("pragma synchronous = off")
        self._own.execute("create table application (queue text, actor text)")
        self._own.execute("create index application_queue on application (queue)")

    def set_clock(self, now: datetime) -> None:
        self._now = now

    def do(self, actor: str, call: Call, queue: str, *, waits: bool) -> Any:
        connection = self._connection(actor)
        if call.verb == "begin":
            try:
                connection.execute("begin immediate")
            except sqlite3.OperationalError:
                return Busy
            self._joined[actor] = SqliteControlPlane.on(connection, clock=self._clock)
            return None
        if call.verb in ("commit", "rollback"):
            return self._ended(connection, call.verb)
        if call.verb == "write":
            connection.execute("insert into application values (?, ?)", (queue, actor))
            return None
        plane = self._joined[actor] if connection.in_transaction else self._plane(actor)
        try:
            return getattr(plane, call.verb)(*call.arguments, **call.options)
        except TenureError as error:
            if connection.in_transaction:
                connection.execute("rollback")
            return type(error)

    def late(self, actor: str) -> Any:
        raise AssertionError("nobody waits on SQLite")

    def has_gone_on(self, actor: str) -> bool:
        return False

    def rows(self, job_ids: Sequence[int], queue: str) -> list[Row]:
        found = self._own.execute(
            rows.SQLITE, {"job_ids": json.dumps(list(job_ids)), "queue": queue}
        )
        return [tuple(None if v is None else str(v) for v in row) for row in found]

    def clear(self, job_ids: Sequence[int]) -> None:
        for connection in self._open.values():
            if connection.in_transaction:
                connection.execute("rollback")
        self._own.executemany("delete from tenure_job where id = ?", [(j,) for j in job_ids])

    def close(self) -> None:
        for connection in (self._own, *self._open.values()):
            connection.close()
        for plane in self._planes.values():
            plane.close()

    def _clock(self) -> datetime:
        return self._now

    def _plane(self, actor: str) -> SqliteControlPlane:
        plane = self._planes.get(actor)
        if plane is None:
            plane = self._planes[actor] = SqliteControlPlane(self._path, clock=self._clock)
        return plane

    def _connection(self, actor: str) -> sqlite3.Connection:
        connection = self._open.get(actor)
        if connection is None:
            connection = sqlite3.connect(self._path, isolation_level=None, timeout=0)
            connection.execute("pragma synchronous = off")
            self._open[actor] = connection
        return connection

    @staticmethod
    def _ended(connection: sqlite3.Connection, how: str) -> Any:
        if not connection.in_transaction:
            return SKIPPED if how == "commit" else None
        try:
            connection.execute(how)
        except sqlite3.DatabaseError:
            connection.execute("rollback")
            return REFUSED
        return None


@contextmanager
def opened(folder: Path) -> Iterator[Sqlite]:
    with impatient(), closing(Sqlite(folder / "schedules.sqlite")) as backend:
        yield backend
