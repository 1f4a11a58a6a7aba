"""Databases on the server of the test run, beside the one that pytest-postgresql clones."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import quote

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from tenure.binaries import find_bindir
from tenure.install import choose_schema

CLOCK = Path(__file__).resolve().parents[1] / "clock.sql"

_numbers = count(1)


def parameters() -> dict[str, Any]:
    """TENURE_TEST_DSN, taken apart."""
    return conninfo_to_dict(os.environ["TENURE_TEST_DSN"])


def url(dbname: str) -> str:
    """A URL of another database on the same server, password included."""
    given = parameters()
    user = quote(str(given.get("user") or "postgres"), safe="")
    password = f":{quote(given['password'], safe='')}" if given.get("password") else ""
    host, port = str(given.get("host") or "127.0.0.1"), given.get("port") or 5432
    if host.startswith("/"):
        place = f"/{quote(dbname, safe='')}?host={quote(host, safe='/')}&port={port}"
    else:
        place = f"{host}:{port}/{quote(dbname, safe='')}"
    return f"postgresql://{user}{password}@{place}"


def new_name(what: str) -> str:
    """A name that no other database of this run, or of one beside it, has."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    return f"tenure_test_{os.getpid()}{worker}_{what}_{next(_numbers)}"


@contextmanager
def database(name: str, *, template: str = "template1") -> Iterator[str]:
    """A database for as long as the block lasts; gives its name."""
    # A copy of the files holds what the first session would have to gather otherwise, too.
    _maintain("create database {} template {} strategy file_copy", name, template)
    try:
        yield name
    finally:
        _maintain("drop database {} with (force)", name)


def _maintain(statement: LiteralString, *names: str) -> None:
    with psycopg.connect(os.environ["TENURE_TEST_DSN"], autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def load_test_clock(dsn: str, schema: str = "tenure") -> None:
    """Put tests/clock.sql over the clock() of an installed schema."""
    with psycopg.connect(dsn) as connection:
        connection.execute(choose_schema(schema).encode())
        connection.execute(CLOCK.read_bytes())


def client(program: str, *arguments: str, stdin: str | None = None) -> str:
    """Run psql, pg_dump or another program of PostgreSQL; return what it printed.

    Raises subprocess.CalledProcessError, with `stderr`, when it fails.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
    return subprocess.run(
        [find_bindir() / program, *arguments],
        input="" if stdin is None else stdin,
        env=environment | {"PSQLRC": os.devnull, "PGCONNECT_TIMEOUT": "10", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
