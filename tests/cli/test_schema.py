"""`tenure migrate` and `tenure sql`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg

from tenure.install import install_script
from tests.cli.conftest import Tenure


def test_migrate_makes_an_sqlite_file_and_may_be_repeated(
    bare_tenure: Tenure, tmp_path: Path
) -> None:
    path = tmp_path / "new.db"
    for _ in range(2):
        ran = bare_tenure("migrate", "--dsn", path)
        assert (ran.code, ran.out) == (0, f"{path} is at version 1\n")
    assert bare_tenure("jobs", "--json", "--dsn", path).json == []


def test_a_file_has_no_revisions_to_choose_from(bare_tenure: Tenure, tmp_path: Path) -> None:
    ran = bare_tenure("migrate", "--revision", "0001", "--dsn", tmp_path / "new.db")
    assert ran.code == 2
    assert "no revisions" in ran.complaint


def test_migrate_makes_a_schema_of_the_name_given(
    bare_tenure: Tenure, empty_database: Callable[[str], str]
) -> None:
    at = ["--dsn", empty_database("cli"), "--schema", "my jobs"]
    ran = bare_tenure("jobs", *at)
    assert ran.code == 1
    assert ran.complaint.endswith("(run: tenure migrate)")

    for _ in range(2):
        migrated = bare_tenure("migrate", *at)
        assert migrated.code == 0
        assert migrated.out.startswith("schema my jobs is at revision 0")
    assert bare_tenure("enqueue", "mail", *at).code == 0
    assert bare_tenure("jobs", *at, "--json").json[0]["kind"] == "mail"

    ran = bare_tenure("migrate", "--revision", "9999", *at)
    assert ran.code == 1
    assert "there is no revision '9999'" in ran.complaint


def test_sql_prints_a_script_that_installs(
    bare_tenure: Tenure, empty_database: Callable[[str], str]
) -> None:
    dsn = empty_database("cli")
    script = bare_tenure("sql", "--schema", "by_hand").out
    assert script == install_script("by_hand")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(script)
    assert bare_tenure("enqueue", "mail", "--dsn", dsn, "--schema", "by_hand").code == 0


def test_sql_can_print_the_migrations_instead(bare_tenure: Tenure) -> None:
    ran = bare_tenure("sql", "--revision", "head")
    assert ran.code == 0
    assert "alembic_version" in ran.out


def test_a_malformed_schema_name_is_refused(bare_tenure: Tenure) -> None:
    ran = bare_tenure("sql", "--schema", "pg_mine")
    assert ran.code == 1
    assert "PostgreSQL's own" in ran.complaint
