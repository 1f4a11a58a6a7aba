"""What the server writes for a job, counted record by record: python -m tests.bench.wal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tenure import Job, Tenure
from tests.bench.counted import counted

JOBS = 5_000


@dataclass
class Written:
    """WAL of one job, in bytes and in records by their kind."""

    bytes: float = 0
    records: dict[str, float] = field(default_factory=dict)

    @property
    def index_entries(self) -> float:
        return self.records.get("Btree/INSERT_LEAF", 0)

    @property
    def row_locks(self) -> float:
        return self.records.get("Heap/LOCK", 0)

    def __str__(self) -> str:
        kinds = ", ".join(f"{n:.2f} {kind}" for kind, n in self.records.items() if n >= 0.05)
        return f"{self.bytes:.0f} bytes: {kinds}"


def lifecycle(dsn: str, jobs: int = JOBS) -> tuple[Written, Written]:
    """What enqueueing in bulk writes, and what one runner that works it all off does."""
    with psycopg.connect(dsn, autocommit=True) as connection, Tenure(dsn) as app:
        app.install()
        connection.execute("create extension if not exists pg_walinspect")

        @app.task
        def nothing(job: Job) -> None: ...

        new = [app.new_job(nothing, {"n": n, "to": "ada@example.com"}) for n in range(jobs)]
        # The first of their kind write more: pages, a partition, a worker's row.
        app.enqueue_many(new)
        app.worker().run_until_idle()
        with _written(connection, jobs) as enqueued:
            app.enqueue_many(new)
        with _written(connection, jobs) as worked:
            app.worker().run_until_idle()
    return enqueued, worked


@contextlib.contextmanager
def _written(connection: psycopg.Connection[Any], jobs: int) -> Iterator[Written]:
    """What is written while the block runs, for each of so many jobs."""
    written = Written()
    start = _flushed(connection)
    yield written
    rows = connection.execute(
        """
        select "resource_manager/record_type", count, combined_size
          from pg_get_wal_stats(%s, %s, per_record => true)
         order by combined_size desc
        """,
        [start, _flushed(connection)],
    ).fetchall()
    written.bytes = sum(float(size) for _, _, size in rows) / jobs
    written.records = {kind: count / jobs for kind, count, _ in rows}


def _flushed(connection: psycopg.Connection[Any]) -> str:
    # What was committed asynchronously may not be in a file yet, where the records are read.
    with connection.transaction():
        connection.execute("set local synchronous_commit = on")
        connection.execute("select pg_logical_emit_message(true, 'bench', '')")
    row = connection.execute("select pg_current_wal_flush_lsn()").fetchone()
    assert row is not None
    return str(row[0])


def main() -> None:
    with counted() as (dsn, _):
        for what, written in zip(("enqueue", "work"), lifecycle(dsn), strict=True):
            print(f"{what}: {written}")


if __name__ == "__main__":
    main()
