"""sql/ says what tenure is, migrations/ how it got there: they must agree."""

from __future__ import annotations

from collections.abc import Callable

import psycopg

from migrations import freeze
from tenure.install import install_script, load_order
from tenure.migrate import downgrade, offline_sql, upgrade
from tests.conftest import Psql
from tests.migrations.schemas import bodies_of, left_in, rows_of, schema_of

MakeDatabase = Callable[[str], str]

INSTALL = freeze.SQL / "install.sql"


def test_installing_and_migrating_make_the_same_schema(
    empty_database: MakeDatabase, psql: Psql
) -> None:
    installed, migrated = empty_database("installed"), empty_database("migrated")
    psql(installed, file=INSTALL)
    upgrade(migrated)

    assert schema_of(migrated) == schema_of(installed)
    for table in ("alembic_version", "install"):
        assert rows_of(migrated, table) == rows_of(installed, table)


def test_the_one_script_makes_the_same_schema_through_any_driver(
    empty_database: MakeDatabase, psql: Psql
) -> None:
    installed, scripted, piped = map(empty_database, ("installed", "scripted", "piped"))
    psql(installed, file=INSTALL)
    with psycopg.connect(scripted, autocommit=True) as connection:
        connection.execute(install_script().encode())
    psql(piped, stdin=install_script())

    assert schema_of(scripted) == schema_of(piped) == schema_of(installed)
    assert rows_of(scripted, "alembic_version") == rows_of(installed, "alembic_version")


def test_the_offline_script_makes_the_same_schema(empty_database: MakeDatabase, psql: Psql) -> None:
    installed, offline = empty_database("installed"), empty_database("offline")
    psql(installed, file=INSTALL)
    psql(offline, stdin=offline_sql())

    assert schema_of(offline) == schema_of(installed)
    assert rows_of(offline, "alembic_version") == rows_of(installed, "alembic_version")


def test_every_way_in_keeps_each_function_body_byte_for_byte(
    empty_database: MakeDatabase, psql: Psql
) -> None:
    """O43."""
    installed, migrated, offline, scripted = map(
        empty_database, ("installed", "migrated", "offline", "scripted")
    )
    psql(installed, file=INSTALL)
    upgrade(migrated)
    psql(offline, stdin=offline_sql())
    psql(scripted, stdin=install_script())

    bodies = bodies_of(installed)
    assert len(bodies) == len(list(freeze.SQL.glob("functions/*.sql")))
    for file in freeze.SQL.glob("functions/*.sql"):
        text = file.read_text(encoding="utf-8")
        assert any(
            f"$${body}$$" in text
            for name, body in bodies.items()
            if name.startswith(f"{file.stem}(")
        )
    assert bodies_of(migrated) == bodies
    assert bodies_of(offline) == bodies
    assert bodies_of(scripted) == bodies


def test_each_revision_goes_down_to_where_it_came_from(empty_database: MakeDatabase) -> None:
    """O41, O43: with the bodies that the earlier revision had."""
    dsn = empty_database("stairs")
    with psycopg.connect(dsn) as connection:
        connection.execute("create schema tenure")

    below = "base"
    for revision in freeze.revisions():
        before = schema_of(dsn)
        assert upgrade(dsn, revision=revision) == revision
        assert schema_of(dsn) != before
        downgrade(dsn, revision=below)
        assert schema_of(dsn) == before
        upgrade(dsn, revision=revision)
        below = revision


def test_going_down_to_base_leaves_only_the_schema(empty_database: MakeDatabase) -> None:
    dsn = empty_database("base")
    upgrade(dsn)

    assert downgrade(dsn, revision="base") is None

    assert left_in(dsn) == []
    assert upgrade(dsn) == freeze.revisions()[-1]


def test_nothing_in_sql_has_changed_without_a_migration() -> None:
    changed = freeze.changed()
    assert changed == [], f"make freeze REV={freeze.revisions()[-1]}, or write the next revision"


def test_every_file_in_sql_is_loaded_exactly_once() -> None:
    files = {file.relative_to(freeze.SQL).as_posix() for file in freeze.SQL.rglob("*.sql")}
    assert sorted(load_order()) == sorted(files - {"install.sql"})


def test_the_installed_version_is_the_newest_revision(fresh_dsn: str) -> None:
    [version] = rows_of(fresh_dsn, "alembic_version")
    assert version == freeze.revisions()[-1]
    assert f"values ('{version}')" in (freeze.SQL / "version.sql").read_text()
