"""psql -f sql/install.sql installs everything, or nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import psycopg
import pytest

from migrations import freeze
from tests.conftest import Psql
from tests.migrations.schemas import left_in, rows_of
from tests.tools import databases

MakeDatabase = Callable[[str], str]

INSTALL = freeze.SQL / "install.sql"


def complaint_of(dsn: str, *arguments: str) -> str:
    """What psql, with no option set for it, says on stderr when install.sql fails."""
    with pytest.raises(subprocess.CalledProcessError) as failure:
        databases.client("psql", "-X", *arguments, "-f", str(INSTALL), dsn)
    assert failure.value.returncode == 3
    return str(failure.value.stderr)


def test_the_default_schema_is_tenure(empty_database: MakeDatabase, psql: Psql) -> None:
    dsn = empty_database("default")

    said = psql(dsn, file=INSTALL)

    assert said == ""
    assert rows_of(dsn, "alembic_version") == [freeze.revisions()[-1]]


def test_a_second_install_is_refused_in_a_line(fresh_dsn: str) -> None:
    lines = complaint_of(fresh_dsn).splitlines()

    assert lines[0].endswith(
        "ERROR:  schema tenure is in use already: it has a table alembic_version"
    )
    assert lines[1:] == ["HINT:  To bring an older tenure up to date, run: tenure migrate"]


def test_an_install_that_fails_leaves_nothing(empty_database: MakeDatabase) -> None:
    dsn = empty_database("taken")
    with psycopg.connect(dsn) as connection:
        connection.execute("create schema tenure create table attempt (mine int)")
    before = left_in(dsn)

    assert 'relation "attempt" already exists' in complaint_of(dsn)

    assert left_in(dsn) == before


@pytest.mark.parametrize(("schema", "size"), [("", 0), ("x" * 64, 64)])
def test_a_name_of_impossible_length_is_refused(
    empty_database: MakeDatabase, schema: str, size: int
) -> None:
    complaint = complaint_of(empty_database("refused"), "-v", f"schema={schema}")

    assert f"ERROR:  a schema name has 1 to 63 bytes, not {size}" in complaint
