"""Makes the fixture of the first schema anew: dump.sql and surface.txt.

    python -m tests.migrations.first_schema.make

For as long as 0001 is the only revision and may itself be frozen anew, which is until the first
release. Afterwards the fixture is what that release installed and never changes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psycopg

from migrations import freeze
from tenure import embedded
from tenure.install import choose_schema
from tenure.migrate import upgrade
from tests.migrations.first_schema import surface
from tests.migrations.first_schema.jobs import leave_jobs
from tests.postgres.races import Connection, connected
from tests.tools import databases

DUMP = Path(__file__).with_name("dump.sql")

# What depends on the version of pg_dump, or is random.
NOT_KEPT = ("--", "\\restrict", "\\unrestrict", "SET transaction_timeout")


def main() -> None:
    first, *later = freeze.revisions()
    if later:
        sys.exit(f"the fixture stays as {first} was released: {later[0]} came after it")
    with embedded.temporary() as server:
        os.environ["TENURE_TEST_DSN"] = server.url()
        with databases.database("first") as name:
            write(databases.url(name))


def write(dsn: str) -> None:
    """Fill an empty database with the first schema and jobs, and write down what is in it."""
    upgrade(dsn)
    databases.load_test_clock(dsn)
    with connected(dsn) as connection:
        drop_days(connection)  # of the present week: every dump would be another
        leave_jobs(connection)
    with psycopg.connect(dsn) as connection:
        connection.execute("drop table tenure.test_clock")
        connection.execute(choose_schema("tenure").encode())
        connection.execute((freeze.SQL / "functions/clock.sql").read_bytes())
        connection.execute((freeze.SQL / "grants.sql").read_bytes())
    with psycopg.connect(dsn, autocommit=True) as connection:
        lines = surface.surface(connection)
    surface.FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    dump = databases.client("pg_dump", "--no-owner", "--column-inserts", "-d", dsn)
    kept = [line for line in dump.splitlines() if not line.startswith(NOT_KEPT)]
    DUMP.write_text("\n".join(_without_gaps(kept)) + "\n", encoding="utf-8")


def drop_days(connection: Connection) -> None:
    """Drop every partition of the history but the default one."""
    days = connection.execute(
        """
        select i.inhrelid::regclass::text
          from pg_inherits as i
         where i.inhparent = 'tenure.job_history'::regclass
           and i.inhrelid <> 'tenure.job_history_default'::regclass
        """
    ).fetchall()
    for (day,) in days:
        connection.execute(f"drop table {day}".encode())


def _without_gaps(lines: list[str]) -> list[str]:
    return [line for n, line in enumerate(lines) if line or (n and lines[n - 1])]


if __name__ == "__main__":
    main()
