"""A server of one's own that counts the statements it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from tenure import embedded

COUNTING = {
    **embedded.FAST,
    "shared_preload_libraries": "pg_stat_statements",
    # Its workers commit too.
    "autovacuum": "off",
}


@dataclass(frozen=True, slots=True)
class Counts:
    """What the server was sent since the counter was set to zero, but for the counter's own."""

    statements: dict[str, int]
    commits: int

    @property
    def total(self) -> int:
        return sum(self.statements.values())


class Counter:
    """Counts in one database, from another one."""

    def __init__(self, server: embedded.Server, dbname: str) -> None:
        self._dbname = dbname
        self._connection: psycopg.Connection[Any] = psycopg.connect(server.url(), autocommit=True)
        self._connection.execute("create extension if not exists pg_stat_statements")
        self._commits = 0

    def zero(self) -> None:
        self._connection.execute("select pg_stat_statements_reset()")
        self._commits = self._committed()

    def nobody(self) -> bool:
        """Whether every session there has ended, so that its commits are counted."""
        return not self._connection.execute(
            "select from pg_stat_activity where datname = %s", (self._dbname,)
        ).fetchall()

    def sleeps(self) -> bool:
        """Whether a runner sleeps: the last thing before that is to ask when a job is due."""
        return bool(
            self._connection.execute(
                """
                select from pg_stat_activity
                 where datname = %s and state = 'idle' and query like '%%next_due%%'
                """,
                (self._dbname,),
            ).fetchall()
        )

    def counts(self) -> Counts:
        rows = self._connection.execute(
            """
            select s.query, s.calls
              from pg_stat_statements as s
              join pg_database as d on d.oid = s.dbid
             where d.datname = %s
             order by s.calls desc
            """,
            (self._dbname,),
        ).fetchall()
        return Counts(dict(rows), self._committed() - self._commits)

    def close(self) -> None:
        self._connection.close()

    def _committed(self) -> int:
        row = self._connection.execute(
            "select xact_commit from pg_stat_database where datname = %s", (self._dbname,)
        ).fetchone()
        assert row is not None
        return int(row[0])


@contextmanager
def counted() -> Iterator[tuple[str, Counter]]:
    """The DSN of an empty database, and the counter of what it is sent."""
    with embedded.temporary(COUNTING) as server:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("create database counted")
        counter = Counter(server, "counted")
        try:
            yield server.url("counted"), counter
        finally:
            counter.close()
