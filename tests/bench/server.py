"""The one server of a run, with an empty database for each turn of each peer."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tenure import embedded

SETTINGS = {
    "synchronous_commit": "on",
    "shared_buffers": "1GB",
    "max_wal_size": "4GB",
    # For a crowd of runners; nothing else depends on it.
    "max_connections": "400",
}
TICKS = os.sysconf("SC_CLK_TCK")


class PlainServer(embedded.Server):
    """A cluster as initdb makes it; the embedded one has smaller WAL segments."""

    def _initdb(self, owner: dict[str, Any]) -> None:
        # fmt: off
        subprocess.run(
            [self.bindir / "initdb", "-D", self.data, "-U", self.user, "-A", "trust",
             "-E", "UTF8", "--locale=C"],
            env=self._environment(), cwd=self.base, check=True, stdout=subprocess.DEVNULL, **owner,
        )
        # fmt: on


@dataclass(frozen=True)
class Database:
    """One peer's for one turn, and what the whole server spent."""

    url: str
    host: str
    pid: int
    connection: psycopg.Connection[Any]

    def ask(self, sql: str) -> Any:
        row = self.connection.execute(sql).fetchone()
        assert row is not None
        return row[0]

    def wal(self) -> int:
        """Bytes written so far."""
        return int(self.ask("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"))

    def cpu(self) -> float:
        """Seconds so far, of processes that ended too."""
        return cpu(self.pid)


@contextlib.contextmanager
def started() -> Iterator[PlainServer]:
    """A server in a new folder, removed at the end."""
    place = "/tmp" if Path("/tmp").is_dir() else None  # a Unix socket's path must be short
    base = Path(tempfile.mkdtemp(prefix="tenure-bench-", dir=place))
    with PlainServer(base, settings=SETTINGS) as server:
        yield server


@contextlib.contextmanager
def database(server: embedded.Server, name: str) -> Iterator[Database]:
    """An empty database, just after a checkpoint, dropped at the end."""
    assert server.pid is not None
    with psycopg.connect(server.url(), autocommit=True) as admin:
        admin.execute(f'drop database if exists "{name}" with (force)')
        admin.execute(f'create database "{name}"')
        try:
            with psycopg.connect(server.url(name), autocommit=True) as connection:
                connection.execute("checkpoint")
                yield Database(server.url(name), str(server.base), server.pid, connection)
        finally:
            admin.execute(f'drop database if exists "{name}" with (force)')


def cpu(pid: int) -> float:
    """Seconds that a process and its children used, so far as Linux tells; 0 for one that ended.

    Of children that ended only those count that it waited for, as a postmaster does.
    """
    try:
        while True:
            own, waited_for = _times(pid)
            used = own + waited_for
            for task in Path(f"/proc/{pid}/task").iterdir():
                children = (task / "children").read_text().split()
                used += sum(cpu(int(child)) for child in children)
            # A child that was waited for in between is in neither sum.
            if _times(pid)[1] == waited_for:
                return used
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


def _times(pid: int) -> tuple[float, float]:
    """Seconds of a process, and of the children that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system, children_user, children_system = (int(field) / TICKS for field in fields[11:15])
    return user + system, children_user + children_system
