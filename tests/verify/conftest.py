"""Databases to verify: healthy ones, a broken one, and roles that may do little."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.cli.conftest import bare_tenure
from tests.tools import databases

__all__ = ["bare_tenure"]


@pytest.fixture(scope="session")
def install(migrated_database: str) -> Iterator[str]:
    """A database with tenure in it, for all tests."""
    with databases.database(databases.new_name("verify"), template=migrated_database) as name:
        yield databases.url(name)


@pytest.fixture
def role(install: str) -> Iterator[Callable[..., str]]:
    """Makes a role that was granted these words; gives the DSN with which it connects."""
    made = []
    with psycopg.connect(install, autocommit=True) as owner:

        def make(*words: str) -> str:
            name = f"tenure_test_{secrets.token_hex(4)}"
            owner.execute(sql.SQL("create role {} login password 'x'").format(sql.Identifier(name)))
            made.append(name)
            for word in words:
                owner.execute("select tenure.grant_role(%s, %s)", [name, word])
            return psycopg.conninfo.make_conninfo(install, user=name, password="x")

        yield make
        for name in made:
            for statement in ("drop owned by {}", "drop role {}"):
                owner.execute(sql.SQL(statement).format(sql.Identifier(name)))


def schemas(dsn: str) -> list[str]:
    """The schemas of a database that are tenure's."""
    with psycopg.connect(dsn) as connection:
        return [
            name
            for (name,) in connection.execute(
                "select nspname::text from pg_namespace where nspname like 'tenure%'"
            )
        ]


def live_jobs(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        [[count]] = connection.execute("select count(*) from tenure.job").fetchall()
    return int(count)


@contextmanager
def changed(dsn: str, function: str, change: Callable[[str], str]) -> Iterator[None]:
    """A function of the install as `change` makes it of its definition, and healed afterwards."""
    with psycopg.connect(dsn, autocommit=True) as owner:
        [[healthy]] = owner.execute(
            "select pg_get_functiondef(p.oid) from pg_proc as p"
            " where p.pronamespace = 'tenure'::regnamespace and p.proname = %s",
            [function],
        ).fetchall()
        broken = change(healthy)
        assert broken != healthy
        execute: Any = owner.execute
        execute(broken)
        try:
            yield
        finally:
            execute(healthy)
