"""Transactions that a job can be completed in, each begun and committed here."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import time
from collections.abc import Callable
from typing import Any, Protocol

import psycopg
from psycopg.pq import TransactionStatus

from tenure.control_plane import ControlPlane
from tenure.errors import Busy, InvalidArgument
from tenure.joining import driver_connection
from tenure.postgres_call import Connection, is_refusal
from tenure.sqlite_file import WORKER_PATIENCE
from tenure.sqlite_joined import too_late
from tenure.sqlite_transaction import is_busy, translated

_PAUSE = (0.001, 0.004)


class Scope(Protocol):
    """One transaction over one connection, from its first statement to its COMMIT."""

    @property
    def given(self) -> Any:
        """What the handler runs its SQL on."""
        ...

    @property
    def plane(self) -> ControlPlane:
        """The control plane inside the transaction."""
        ...

    def begin(self) -> None:
        """Raises `InvalidArgument` where a transaction is open already: its COMMIT would be
        somebody else's."""
        ...

    def flush(self) -> None:
        """Send what is still to be sent, before the job is completed.

        Raises `InvalidArgument` when the transaction was ended inside the block.
        """
        ...

    def commit(self) -> None: ...

    def roll_back(self) -> None:
        """Never raises an `Exception`."""
        ...

    def refused(self, error: BaseException) -> bool:
        """Whether this error of `commit` proves that nothing was committed; asked right after."""
        ...


class PsycopgScope:
    """Over a psycopg connection. COMMIT and ROLLBACK inside the block are refused by psycopg."""

    def __init__(self, connection: Connection, plane: ControlPlane) -> None:
        self.given = connection
        self.plane = plane
        self._transaction = connection.transaction()

    def begin(self) -> None:
        if self.given.info.transaction_status is not TransactionStatus.IDLE:
            raise open_already()
        self._transaction.__enter__()

    def flush(self) -> None:
        if self.given.info.transaction_status is TransactionStatus.IDLE:
            raise _ended_inside()

    def commit(self) -> None:
        self._transaction.__exit__(None, None, None)
        if self.given.closed:  # then psycopg has sent nothing, and says nothing
            raise psycopg.OperationalError("the connection was lost before COMMIT")

    def roll_back(self) -> None:
        error = psycopg.Rollback()
        with contextlib.suppress(Exception):
            self._transaction.__exit__(type(error), error, None)

    def refused(self, error: BaseException) -> bool:
        return is_refusal(error) and not self.given.closed


class SqliteScope:
    """Over a sqlite3 connection."""

    def __init__(self, connection: sqlite3.Connection, plane: ControlPlane) -> None:
        self.given = connection
        self.plane = plane

    def begin(self) -> None:
        if self.given.in_transaction:
            raise open_already()
        begin_immediate(self.given)

    def flush(self) -> None:
        if not self.given.in_transaction:
            raise _ended_inside()

    def commit(self) -> None:
        try:
            # Not connection.commit(): in one of Python's modes it does nothing.
            self.given.execute("commit")
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_AUTH:
                raise too_late() from error
            raise

    def roll_back(self) -> None:
        with contextlib.suppress(Exception):
            self.given.rollback()

    def refused(self, error: BaseException) -> bool:
        return self.given.in_transaction


class SqlalchemyScope:
    """Over SQLAlchemy's Connection or Session, whose driver is one of the above."""

    plane: ControlPlane

    def __init__(self, given: Any, plane_over: Callable[[Any], ControlPlane]) -> None:
        """`plane_over` makes a control plane over the driver's connection."""
        self.given = given
        self._plane_over = plane_over
        self._raw: Any = None

    def begin(self) -> None:
        if self.given.in_transaction():
            raise open_already()
        self.given.begin()
        try:
            self._raw = driver_connection(self.given)
            self.plane = self._plane_over(self._raw)
            if isinstance(self._raw, sqlite3.Connection):
                begin_immediate(self._raw)
        except BaseException:
            self.roll_back()
            raise

    def flush(self) -> None:
        if hasattr(self.given, "flush"):
            self.given.flush()
        if not self.given.in_transaction() or not _is_open(self._raw):
            raise _ended_inside()

    def commit(self) -> None:
        self.given.commit()

    def roll_back(self) -> None:
        with contextlib.suppress(Exception):
            self.given.rollback()

    def refused(self, error: BaseException) -> bool:
        if isinstance(self._raw, sqlite3.Connection):
            return self._raw.in_transaction
        return is_refusal(getattr(error, "orig", error)) and not self._raw.closed


def begin_immediate(connection: sqlite3.Connection) -> None:
    """Take the file's write lock, or raise `Busy` after 2 s."""
    deadline = time.monotonic() + WORKER_PATIENCE.total_seconds()
    while True:
        try:
            connection.execute("begin immediate")
            return
        except sqlite3.Error as error:
            if not is_busy(error):
                if (known := translated(error, "the file")) is None:
                    raise
                raise known from error
            if time.monotonic() >= deadline:
                raise Busy("the file was locked by other writers", hint="try again") from error
        time.sleep(random.uniform(*_PAUSE))


def open_already() -> InvalidArgument:
    return InvalidArgument(
        "the connection has a transaction open already",
        hint="commit or roll back first: job.transaction() begins and commits one of its own",
    )


def _ended_inside() -> InvalidArgument:
    return InvalidArgument(
        "the transaction was ended inside the block, and the job is not completed",
        hint="leave COMMIT and ROLLBACK to job.transaction()",
    )


def _is_open(raw: Any) -> bool:
    if isinstance(raw, sqlite3.Connection):
        return raw.in_transaction
    return bool(raw.info.transaction_status is not TransactionStatus.IDLE)
