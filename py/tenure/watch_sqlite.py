"""Learns from a SQLite file that jobs may have ended: somebody has committed."""

from __future__ import annotations

from collections.abc import Callable, Collection

from tenure.sqlite_pace import Pace
from tenure.waits import Look


class SqliteWatch:
    """Looks at `PRAGMA data_version`, every ms at first and ten times a second in the end."""

    def __init__(self, data_version: Callable[[], int], *, closed: Callable[[], None]) -> None:
        """`data_version` is that of a connection which commits nothing itself."""
        self._data_version = data_version
        self._closed = closed
        self._version: int | None = None
        self._waited: frozenset[int] = frozenset()
        self._pace = Pace()

    def look(self, waited: Collection[int]) -> Look:
        # Before the jobs are read: a commit that the read does not see moves it afterwards.
        version = self._data_version()
        moved, self._version = version != self._version, version
        if moved or not self._waited.issuperset(waited):
            self._pace.moved()
        self._waited = frozenset(waited)
        return Look(at_all=moved, within=self._pace.pause())

    def rest(self) -> None:
        """Nothing: whoever commits does not know of this."""

    def close(self) -> None:
        self._closed()
