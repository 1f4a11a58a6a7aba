"""Who may upgrade, when, and what is left when it is refused."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from migrations import freeze
from tenure.errors import InvalidArgument, SchemaOutdated, ServerUnavailable
from tenure.migrate import downgrade, offline_sql, upgrade
from tests.migrations.schemas import left_in, rows_of

MakeDatabase = Callable[[str], str]

HEAD = freeze.revisions()[-1]
LOCK = 0x74656E757265

# Ten processes, of which each takes one task: none is free again before all stand at the lock.
CROWD = """
import multiprocessing
import sys

from tenure.migrate import upgrade

with multiprocessing.get_context("fork").Pool(10) as pool:
    print(*pool.map(upgrade, sys.argv[1:] * 10, chunksize=1), sep="\\n")
"""


@pytest.mark.timeout(240)
def test_ten_processes_upgrade_at_once_and_one_does_the_work(empty_database: MakeDatabase) -> None:
    dsn = empty_database("crowd")
    with psycopg.connect(dsn) as gate:
        gate.execute("select pg_advisory_xact_lock(%s)", (LOCK,))
        crowd = subprocess.Popen(
            [sys.executable, "-c", CROWD, dsn],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for_a_queue(gate, 10)
        gate.rollback()
    answer = (*crowd.communicate(timeout=100), crowd.returncode)

    assert answer == (f"{HEAD}\n" * 10, "", 0)
    assert rows_of(dsn, "alembic_version") == [HEAD]


def wait_for_a_queue(watcher: psycopg.Connection, length: int) -> None:
    """Until so many wait for a lock in the watcher's database."""
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        [waiting] = watcher.execute(
            """
            select count(*)
              from pg_locks as l
              join pg_database as d on d.oid = l.database
             where d.datname = current_database() and l.locktype = 'advisory' and not l.granted
            """
        ).fetchall()
        if waiting == (length,):
            return
        time.sleep(0.02)
    pytest.fail(f"there were never {length} waiting")


def test_a_second_upgrade_finds_nothing_to_do(fresh_dsn: str) -> None:
    assert upgrade(fresh_dsn) == HEAD
    assert rows_of(fresh_dsn, "install") != []


def test_an_upgrade_that_fails_leaves_nothing(empty_database: MakeDatabase) -> None:
    dsn = empty_database("taken")
    with psycopg.connect(dsn) as connection:
        connection.execute("create schema tenure create table attempt (mine int)")
    before = left_in(dsn)

    with pytest.raises(psycopg.errors.DuplicateTable):
        upgrade(dsn)

    assert left_in(dsn) == before


def test_the_version_table_of_another_project_is_left_alone(empty_database: MakeDatabase) -> None:
    dsn = empty_database("shared")
    with psycopg.connect(dsn) as connection:
        connection.execute("create table public.alembic_version (version_num varchar(32))")
        connection.execute(f"insert into public.alembic_version values ('{HEAD}')")

    with pytest.raises(InvalidArgument, match="migrations of another project"):
        upgrade(dsn, schema="public")


def test_a_newer_schema_is_refused_by_an_older_tenure(fresh_dsn: str) -> None:
    with psycopg.connect(fresh_dsn) as connection:
        connection.execute("update tenure.alembic_version set version_num = '9999'")

    with pytest.raises(SchemaOutdated, match="revision 9999, which this tenure does not know"):
        upgrade(fresh_dsn)
    with pytest.raises(SchemaOutdated, match="revision 9999"):
        downgrade(fresh_dsn, revision="base")


def test_there_is_no_way_down_from_nothing(empty_database: MakeDatabase) -> None:
    dsn = empty_database("nothing")

    with pytest.raises(SchemaOutdated, match="no tenure in schema tenure"):
        downgrade(dsn, revision="base")

    with psycopg.connect(dsn) as connection:
        assert connection.execute("select to_regnamespace('tenure')").fetchone() == (None,)


def test_a_dependent_view_stops_the_way_down(fresh_dsn: str) -> None:
    with psycopg.connect(fresh_dsn) as connection:
        connection.execute("create view public.mine as select id from tenure.job")

    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        downgrade(fresh_dsn, revision="base")

    assert rows_of(fresh_dsn, "alembic_version") == [HEAD]


@pytest.mark.parametrize("dsn", ["", "nonsense", "postgresql+psycopg://somewhere/db", "port=x"])
def test_a_malformed_dsn_is_refused_before_anything_is_tried(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGHOST", "/nowhere")
    with pytest.raises((InvalidArgument, ServerUnavailable)) as refusal:
        upgrade(dsn)
    assert "\n" not in str(refusal.value)
    if "=" not in dsn and dsn:
        assert refusal.type is InvalidArgument


def test_a_server_that_is_down_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ServerUnavailable, match=r"^cannot connect: .*No such file") as refusal:
        upgrade(f"host={tmp_path} dbname=x")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("revision", ["9999", "no such", "-99"])
def test_an_unknown_revision_is_refused(empty_database: MakeDatabase, revision: str) -> None:
    with pytest.raises(InvalidArgument, match=f"there is no revision '{revision}'"):
        upgrade(empty_database("unknown"), revision=revision)
    with pytest.raises(InvalidArgument, match=f"there is no revision '{revision}'"):
        offline_sql(revision=revision)


def test_an_upgrade_needs_no_right_to_create_schemas(empty_database: MakeDatabase) -> None:
    dsn = empty_database("humble")
    role = f"humble_{time.monotonic_ns()}"
    with psycopg.connect(dsn, autocommit=True) as owner:
        try:
            owner.execute(f"create role {role}")
        except psycopg.errors.InsufficientPrivilege:
            pytest.skip("the tests' own role may not create another")
        owner.execute(f"create schema tenure authorization {role}")
        owner.execute(f"grant {role} to current_user")
    try:
        assert upgrade(f"{dsn}{'&' if '?' in dsn else '?'}options=-crole%3D{role}") == HEAD
    finally:
        with psycopg.connect(dsn, autocommit=True) as owner:
            owner.execute(f"drop owned by {role} cascade")
            owner.execute(f"drop role {role}")
