"""Transactions of their own on one SQLite file, over a connection per thread."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TypeVar
from weakref import WeakSet

from tenure.errors import Busy, InvalidArgument, ServerUnavailable
from tenure.sqlite_transaction import Transaction, is_busy, translated
from tenure.sqlite_values import Clock

T = TypeVar("T")

PATIENCE = timedelta(seconds=5)
"""How long a call waits for other writers before it raises `Busy`."""

WORKER_PATIENCE = timedelta(seconds=2)
"""How long a verb of a lease's owner waits before it answers `deferred`; also `guard`."""

OLDEST_SQLITE = (3, 37, 0)
_PAUSE = (0.001, 0.004)
_FORK_PATIENCE = 10.0

# synchronous = full: a commit that was answered survives a loss of power (in WAL, NORMAL may
# lose it). The short busy_timeout is for the locks that SQLite takes on its own; who waits for
# the write lock is woken by nobody, so the tries are made here, closer together than SQLite's.
PRAGMAS = ("pragma busy_timeout = 20", "pragma synchronous = full")
WAL = "pragma journal_mode = wal"
RELAXED = "pragma synchronous = off"

_files: WeakSet[SqliteFile] = WeakSet()
_no_fork = threading.Lock()
_relaxed: set[Path] = set()


def relax(path: Path) -> None:
    """Let the commits to a file be lost with the machine: for tests only."""
    _relaxed.add(path)


class ThreadConnection(sqlite3.Connection):
    """One thread's connection; other threads touch it only to close it, while it is not in use."""

    def __init__(self, path: Path) -> None:
        self.in_use = threading.Lock()
        self.is_open = True
        self.is_ready = False
        self.process = os.getpid()
        super().__init__(path, isolation_level=None, check_same_thread=False)

    def close_idle(self, patience: float) -> None:
        """Wait until no transaction runs on it, then close it."""
        if self.in_use.acquire(timeout=patience):
            try:
                self.is_open = False
                self.close()
            finally:
                self.in_use.release()


class _Held:
    """Closes a thread's connection when the thread has ended.

    A connection is part of a reference cycle (its statement cache), so letting go of it alone
    would leave it open until a garbage collection.
    """

    def __init__(self, connection: ThreadConnection) -> None:
        self.connection = connection

    def __del__(self) -> None:
        if self.connection.process == os.getpid():
            with contextlib.suppress(sqlite3.Error):
                self.connection.close()


class SqliteFile:
    """One database file. Threads: any, each gets a connection. Processes: any.

    No connection crosses a fork: SQLite would take the parent's locks for the child's own, and
    the child would then work without any. So all are closed just before a fork; parent and child
    open anew when they next need one.
    """

    alone = True

    def __init__(self, path: str | os.PathLike[str], clock: Clock) -> None:
        if os.fspath(path) in ("", ":memory:"):
            raise InvalidArgument(f"{path!r} is no file that threads share", hint="pass a path")
        self.path = Path(path)
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise ServerUnavailable(
                f"SQLite is {sqlite3.sqlite_version}", hint="tenure needs 3.37 or later"
            )
        self._clock = clock
        self._local = threading.local()
        self._connections: WeakSet[ThreadConnection] = WeakSet()
        self._closed = False
        _files.add(self)

    def refuse_late(self) -> None: ...

    def read(self, work: Callable[[Transaction], T]) -> T:
        return self._run("begin", work, PATIENCE)

    def write(self, work: Callable[[Transaction], T], *, patience: timedelta) -> T:
        # Immediate: a transaction that reads first and then writes is refused at once, whatever
        # the timeout, when another writer came in between.
        return self._run("begin immediate", work, patience)

    def data_version(self) -> int:
        """A number that moves with every commit made by another connection of the file.

        To be compared only with earlier answers of the same thread.
        """
        with self._own_errors(), self._connection() as connection:
            [version] = connection.execute("pragma data_version").fetchone()
        return int(version)

    def close(self) -> None:
        """Close the connections of all threads. A later call raises `ServerUnavailable`."""
        self._closed = True
        self.close_connections()

    def close_connections(self) -> None:
        for connection in list(self._connections):
            connection.close_idle(_FORK_PATIENCE)

    def _run(self, begin: str, work: Callable[[Transaction], T], patience: timedelta) -> T:
        deadline = time.monotonic() + patience.total_seconds()
        while True:
            try:
                with self._connection() as connection:
                    return _once(connection, begin, work, self._clock)
            except sqlite3.Error as error:
                if not is_busy(error):
                    if (known := translated(error, self.path)) is None:
                        raise
                    raise known from error
                if time.monotonic() >= deadline:
                    seconds = f"{patience.total_seconds():g} s"
                    raise Busy(
                        f"{self.path} was locked by other writers for {seconds}",
                        hint="try again",
                    ) from error
            time.sleep(random.uniform(*_PAUSE))

    @contextlib.contextmanager
    def _own_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if (known := translated(error, self.path)) is None:
                raise
            raise known from error

    @contextlib.contextmanager
    def _connection(self) -> Iterator[ThreadConnection]:
        """This thread's connection, for its own use until the block ends."""
        while True:
            connection = self._opened()
            with connection.in_use:
                if connection.is_open:  # else a fork or close() came in between
                    if not connection.is_ready:
                        _make_ready(connection, relaxed=self.path in _relaxed)
                    yield connection
                    return

    def _opened(self) -> ThreadConnection:
        held: _Held | None = getattr(self._local, "held", None)
        if held is not None and held.connection.process != os.getpid():
            _inherited.append(held)  # closing it could drop locks that others rely on
            held = None
        if held is None or not held.connection.is_open:
            if self._closed:
                raise ServerUnavailable(f"{self.path} was closed", hint="open it anew")
            with _no_fork:
                held = self._local.held = _Held(ThreadConnection(self.path))
                self._connections.add(held.connection)
        return held.connection


def _make_ready(connection: ThreadConnection, *, relaxed: bool) -> None:
    for pragma in PRAGMAS:
        connection.execute(pragma).fetchall()
    if relaxed:
        connection.execute(RELAXED).fetchall()
    [mode] = connection.execute(WAL).fetchone()
    if mode != "wal":
        raise ServerUnavailable(
            f"SQLite cannot keep a write-ahead log here: journal_mode is {mode}",
            hint="use a local file system",
        )
    connection.is_ready = True


def _once(
    connection: sqlite3.Connection, begin: str, work: Callable[[Transaction], T], clock: Clock
) -> T:
    try:
        connection.execute(begin)
        result = work(Transaction(connection, clock))
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise
    return result


_inherited: list[_Held] = []


def _before_fork() -> None:
    _no_fork.acquire()
    for file in list(_files):
        file.close_connections()


os.register_at_fork(
    before=_before_fork, after_in_parent=_no_fork.release, after_in_child=_no_fork.release
)
