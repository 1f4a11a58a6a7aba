"""An SQLite file as a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tenure.errors import SchemaOutdated
from tenure.postgres_call import MIGRATE
from tenure.sqlite import SqliteControlPlane
from tenure.sqlite_file import SqliteFile
from tenure.sqlite_records import SqliteRecords
from tenure.sqlite_schema import VERSION, version
from tenure.sqlite_values import host_clock


class SqliteStore:
    """One file; whoever asks for a control plane or records first makes its tables."""

    kind = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._records: SqliteRecords | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_records": None}  # what is open stays in this process

    def control_plane(self) -> SqliteControlPlane:
        """A new one; whoever asked for it closes it."""
        return SqliteControlPlane(self.path)

    def records(self) -> SqliteRecords:
        """What people look at, on connections of the store's own."""
        if self._records is None:
            self._records = SqliteRecords(self.path)
        return self._records

    def check(self) -> None:
        """Raise `SchemaOutdated` or `ServerUnavailable` unless jobs can be kept there now.

        Makes no file and no tables.
        """
        if not self.path.exists():
            raise SchemaOutdated(f"there is no file {self.path}", hint=MIGRATE)
        file = SqliteFile(self.path, host_clock)
        try:
            found = file.read(version)
        finally:
            file.close()
        if found is None:
            raise SchemaOutdated(f"there is no tenure in {self.path}", hint=MIGRATE)
        self.records()  # refuses tables of another version

    def install(self) -> str:
        """Make the file and its tables where there are none; the version of the tables."""
        self.control_plane().close()
        return str(VERSION)

    def close(self) -> None:
        """Close what the store itself has open. A later call opens it again."""
        if self._records is not None:
            self._records.close()
            self._records = None
