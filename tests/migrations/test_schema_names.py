"""Tenure lives in a schema of the caller's choice, whatever its name."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from migrations import freeze
from tenure.errors import InvalidArgument
from tenure.install import install_script
from tenure.migrate import downgrade, offline_sql, upgrade
from tests.conftest import Psql
from tests.migrations.schemas import left_in, rows_of, schema_of

MakeDatabase = Callable[[str], str]

HEAD = freeze.revisions()[-1]

NAMES = [
    "My-Queue",
    "select",
    "a.b",
    "with space",
    'quo"te',
    "quo'te",
    "back\\slash",
    "50%s:name",
    "$$ $tenure$",
    "é" * 31 + "x",
]


@pytest.mark.parametrize("schema", NAMES)
def test_every_way_in_takes_any_name(empty_database: MakeDatabase, psql: Psql, schema: str) -> None:
    """O38: and so does the way down."""
    installed, migrated, offline, scripted = map(
        empty_database, ("installed", "migrated", "offline", "scripted")
    )
    psql(installed, "-v", f"schema={schema}", file=freeze.SQL / "install.sql")
    upgrade(migrated, schema=schema)
    psql(offline, stdin=offline_sql(schema=schema))
    psql(scripted, stdin=install_script(schema))

    for dsn in (installed, migrated, offline, scripted):
        assert rows_of(dsn, "alembic_version", schema) == [HEAD]
    expected = schema_of(installed, schema)
    assert schema_of(migrated, schema) == expected
    assert schema_of(offline, schema) == expected
    assert schema_of(scripted, schema) == expected

    downgrade(migrated, schema=schema, revision="base")
    assert left_in(migrated, schema) == []


def test_two_installs_whose_names_differ_in_case_do_not_meet(
    empty_database: MakeDatabase, psql: Psql
) -> None:
    """O38."""
    dsn = empty_database("two")
    upgrade(dsn, schema="Q")
    psql(dsn, "-v", "schema=q", file=freeze.SQL / "install.sql")

    assert pinned_paths(dsn, "Q") == {'search_path="Q", pg_temp'}
    assert pinned_paths(dsn, "q") == {"search_path=q, pg_temp"}

    downgrade(dsn, schema="Q", revision="base")
    assert left_in(dsn, "Q") == []
    assert rows_of(dsn, "alembic_version", "q") == [HEAD]
    with psycopg.connect(dsn) as connection:
        connection.execute("select q.maintain()")


def pinned_paths(dsn: str, schema: str) -> set[str]:
    """The search_path setting of each function in a schema."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute(
            """
            select distinct s.setting
              from pg_proc as p
              join pg_namespace as n on n.oid = p.pronamespace,
                   unnest(p.proconfig) as s (setting)
             where n.nspname = %s and s.setting like 'search_path=%%'
            """,
            (schema,),
        )
        return {setting for (setting,) in found}


def test_the_schema_may_be_there_and_hold_other_things(empty_database: MakeDatabase) -> None:
    dsn = empty_database("shared")
    with psycopg.connect(dsn) as connection:
        connection.execute("create table public.mine (id int)")

    upgrade(dsn, schema="public")
    downgrade(dsn, schema="public", revision="base")

    assert left_in(dsn, "public") == ["table mine"]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("", "1 to 63 bytes, not 0"),
        ("x" * 64, "1 to 63 bytes, not 64"),
        ("é" * 32, "1 to 63 bytes, not 64"),
        ("nul\0", "no control characters"),
        ("new\nline", "no control characters"),
        ("pg_mine", "PostgreSQL's own"),
    ],
)
def test_a_name_that_no_schema_can_have_is_refused(
    schema: str, why: str, empty_database: MakeDatabase
) -> None:
    with pytest.raises(InvalidArgument, match=why):
        upgrade(empty_database("refused"), schema=schema)
    with pytest.raises(InvalidArgument, match=why):
        install_script(schema)
    with pytest.raises(InvalidArgument, match=why):
        offline_sql(schema=schema)
