"""The databases that schedules are performed in."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg

from tests.schedules import sqlite
from tests.schedules.perform import Backend
from tests.schedules.postgres import PREPARE, Postgres
from tests.tools import databases


@contextmanager
def opened(kind: str, template: str, changes: Sequence[str] = ()) -> Iterator[Backend]:
    """A database of its own: a clone of `template`, with tenure and the test clock, or a file.

    `changes` are statements that make tenure on PostgreSQL another one.
    """
    if kind == "sqlite":
        with (
            tempfile.TemporaryDirectory(prefix="tenure-schedules-") as folder,
            sqlite.opened(Path(folder)) as backend,
        ):
            yield backend
        return
    with databases.database(databases.new_name("schedules"), template=template) as name:
        dsn = databases.url(name)
        with psycopg.connect(dsn) as connection:
            for statement in (PREPARE, *changes):
                connection.execute(statement.encode())
        with closing(Postgres(dsn)) as postgres:
            yield postgres
