"""The first schema with its jobs, put back into a database, at the time when they were left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg

from migrations import freeze
from tenure.migrate import downgrade, upgrade
from tenure.postgres import PostgresControlPlane
from tenure.postgres_records import PostgresRecords
from tests.migrations.first_schema.jobs import LEFT
from tests.migrations.first_schema.make import DUMP
from tests.postgres.races import Connection
from tests.tools import databases


@dataclass(frozen=True, slots=True)
class Left:
    """A job as the fixture left it: what its owner knew then."""

    job_id: int
    worker_id: str
    token: int
    attempt: int

    @property
    def owner(self) -> tuple[int, str, int]:
        return self.job_id, self.worker_id, self.token


@contextmanager
def restored(template: str = "template1") -> Iterator[str]:
    """A database with the fixture in it, or a copy of one that has it: its name."""
    with databases.database(databases.new_name("first"), template=template) as name:
        if template == "template1":
            databases.client(
                "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-1", "-f", str(DUMP),
                databases.url(name),
            )  # fmt: skip
        yield name


def stand_still(dsn: str) -> None:
    """Let the time be that at which the jobs were left; a migration may have made clock() anew."""
    with psycopg.connect(dsn) as connection:
        connection.execute("drop table if exists tenure.test_clock")
    databases.load_test_clock(dsn)
    with psycopg.connect(dsn) as connection:
        connection.execute("update tenure.test_clock set at = %s", [LEFT])


def to_head(dsn: str) -> None:
    upgrade(dsn)


def there_and_back(dsn: str) -> None:
    """Up, down to the first schema, and up again."""
    upgrade(dsn)
    downgrade(dsn, revision=freeze.revisions()[0])
    upgrade(dsn)


WAYS: dict[str, Callable[[str], None]] = {"up": to_head, "up, down and up": there_and_back}


def left(connection: Connection) -> dict[str, list[Left]]:
    """By kind, oldest first; of a job that waits or has ended, its last owner and token."""
    rows: list[Any] = connection.execute(
        "select kind, job_id, coalesce(worker_id, ''), token, attempt from tenure.jobs order by 2"
    ).fetchall()
    found: dict[str, list[Left]] = {}
    for kind, *job in rows:
        found.setdefault(kind, []).append(Left(*job))
    return found


class Aged:
    """A copy of the fixture at head, the present client, and the jobs as they were left.

    An owner shows what it was given before the upgrade, so that is read before.
    """

    def __init__(self, connection: Connection, left: dict[str, list[Left]]) -> None:
        self.connection = connection
        self.plane = PostgresControlPlane(connection)
        self.records = PostgresRecords(connection)
        self.left = left

    def one(self, kind: str) -> Left:
        [job] = self.left[kind]
        return job

    def status(self, job: Left) -> str:
        record = self.records.job(job.job_id)
        assert record is not None
        return str(record.status)

    def pass_by(self, span: timedelta) -> None:
        self.connection.execute("update tenure.test_clock set at = at + %s", [span])
