"""Units of work on a SQLite file, and what its errors mean to a caller."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tenure.errors import Busy, SchemaOutdated, ServerUnavailable, TenureError
from tenure.sqlite_values import Clock, micros

T = TypeVar("T")

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
_UNUSABLE = {
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_PROTOCOL,
}


class Transaction:
    """The statements of one open transaction, and the moment at which it got going.

    Rows are fetched whole: a RETURNING that is still being read would keep the commit from
    happening.
    """

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self._cursor = connection.cursor()
        self._cursor.row_factory = sqlite3.Row
        self.now = micros(clock())
        """Microseconds since 1970, read once, after the wait for the file."""

    def all(self, sql: str, **values: Any) -> list[sqlite3.Row]:
        return self._cursor.execute(sql, values).fetchall()

    def many(self, sql: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Run a statement that answers nothing once for each row of values."""
        self._cursor.executemany(sql, rows)

    def one(self, sql: str, **values: Any) -> sqlite3.Row | None:
        """The first row, which is the only one; None when there is none."""
        rows = self.all(sql, **values)
        return rows[0] if rows else None


class Database(Protocol):
    """Runs units of work; both the file of one's own and a caller's connection can."""

    alone: bool
    """Whether each unit of work is a transaction of its own."""

    def refuse_late(self) -> None:
        """Raise `Busy` where the transaction has taken too long to be committed."""
        ...

    def read(self, work: Callable[[Transaction], T]) -> T:
        """What `work` returns from one consistent snapshot."""
        ...

    def write(self, work: Callable[[Transaction], T], *, patience: timedelta) -> T:
        """What `work` returns once all that it wrote is written, or none of it.

        `work` may be run again from the start. Raises `Busy` when the file could not be had.
        """
        ...


def is_busy(error: sqlite3.Error) -> bool:
    return _primary_code(error) in _BUSY


def translated(error: sqlite3.Error, where: str | Path) -> TenureError | None:
    """The error as a caller can act on it; None for one that nothing here foresees."""
    code = _primary_code(error)
    if code in _BUSY:
        return Busy(f"{where} is locked by another writer", hint="try again")
    if code in _DAMAGED:
        return ServerUnavailable(
            f"{where} is not a SQLite database, or it is damaged: {error}", hint="check the path"
        )
    if code in _UNUSABLE:
        return ServerUnavailable(f"{where} cannot be used: {error}")
    if code == sqlite3.SQLITE_ERROR and "no such table: tenure_" in str(error):
        return SchemaOutdated(f"{where} has no tenure tables", hint="open it with tenure first")
    return None


def _primary_code(error: sqlite3.Error) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)  # absent where sqlite3 itself refuses
    return None if code is None else code & 0xFF
