"""Units of work inside a transaction that the caller opened and will end."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol, TypeVar

from tenure.errors import Busy
from tenure.sqlite_transaction import Transaction, translated
from tenure.sqlite_values import Clock

T = TypeVar("T")

WHERE = "the caller's database"
_LEGACY = -1
"""What `Connection.autocommit` is, from Python 3.12 on, where `isolation_level` rules."""


class Limit(Protocol):
    @property
    def over(self) -> bool:
        """Whether the transaction has taken too long to be committed."""
        ...


class Joined:
    """A caller's connection, as `Database`. Never commits and never waits beyond its timeout.

    Where Python would open a transaction before the caller's next change, it is opened here, so
    that what is written here ends as the caller's other changes do. On a connection in
    autocommit mode outside a transaction each unit of work stands alone.
    """

    alone = False

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self.connection = connection
        self.clock = clock
        self.bound: Limit | None = None
        """Set by a guard."""

    def refuse_late(self) -> None:
        """Roll back and raise `Busy` where a guarded transaction took too long."""
        if self.bound is not None and self.bound.over:
            self.connection.rollback()
            raise too_late()

    def read(self, work: Callable[[Transaction], T]) -> T:
        try:
            return work(Transaction(self.connection, self.clock))
        except sqlite3.Error as error:
            if (known := translated(error, WHERE)) is None:
                raise
            raise known from error

    def write(self, work: Callable[[Transaction], T], *, patience: timedelta = timedelta(0)) -> T:
        try:
            self._begin_as_python_would()
            return self._in_savepoint(work)
        except sqlite3.Error as error:
            if (known := translated(error, WHERE)) is None:
                raise
            raise known from error

    def _begin_as_python_would(self) -> None:
        level = self.connection.isolation_level
        legacy = getattr(self.connection, "autocommit", _LEGACY) == _LEGACY
        if legacy and level is not None and not self.connection.in_transaction:
            self.connection.execute(f"begin {level}")

    def _in_savepoint(self, work: Callable[[Transaction], T]) -> T:
        self.connection.execute("savepoint tenure")
        try:
            result = work(Transaction(self.connection, self.clock))
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("rollback to tenure")
                self.connection.execute("release tenure")
            raise
        self.connection.execute("release tenure")
        return result


def too_late() -> Busy:
    return Busy(
        "the guarded transaction took longer than a third of its lease",
        hint="work first, then open the transaction and only write in it",
    )
