"""Every call that a client of the first schema makes is understood, and answered as then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from migrations import freeze
from tests.migrations.first_schema import calls, surface
from tests.tools import databases

LINES = surface.FILE.read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def connection(migrated_database: str) -> Iterator[psycopg.Connection[Any]]:
    with (
        databases.database(databases.new_name("surface"), template=migrated_database) as name,
        psycopg.connect(databases.url(name), autocommit=True) as connection,
    ):
        yield connection


@pytest.fixture
def changed(connection: psycopg.Connection[Any]) -> Iterator[Callable[[str], list[str]]]:
    """Says what breaks when a statement has changed the schema, and undoes the change."""

    def change(statement: str) -> list[str]:
        connection.execute("set local search_path = tenure")
        connection.execute(statement.encode())
        connection.execute("set local search_path to default")
        return broken(connection)

    connection.execute("begin")
    yield change
    connection.execute("rollback")


def broken(connection: psycopg.Connection[Any]) -> list[str]:
    """The calls that mean nothing any more, or that are answered with other columns."""
    found = []
    for line in LINES:
        statement, _, then = line.partition(" -> ")
        connection.execute("savepoint before")
        try:
            now = surface.columns(connection, statement)
        except psycopg.Error as error:
            now = str(error)
            connection.execute("rollback to before")
        # Who asks for all columns reads them by name: more may follow.
        more = statement.startswith("select * ") and now.startswith(f"{then}, ")
        if now != then and not more:
            found.append(f"{statement}: {now}")
    return found


def test_every_call_of_the_first_client_is_answered_with_the_same_columns(
    connection: psycopg.Connection[Any],
) -> None:
    """O41."""
    with connection.transaction():
        assert broken(connection) == []


BREAKS = [
    (
        """
        create function complete(p_job_id bigint, p_worker_id text, p_token bigint,
                                 p_result jsonb default null, p_more text default null)
          returns job_verdict language sql as 'select null::job_verdict'
        """,
        "function tenure.complete(bigint, text, bigint) is not unique",
    ),
    (
        """
        drop function held;
        create function held(p_worker text) returns setof held_lease
          language sql as 'select null::held_lease'
        """,
        "function tenure.held(p_worker_id => text) does not exist",
    ),
    (
        "alter function complete rename to complete_2",
        "function tenure.complete(bigint, text, bigint) does not exist",
    ),
    ("alter type job_answer alter attribute holder_pid type text", "holder_pid text"),
    ("alter type job_answer drop attribute holder_pid", 'column "holder_pid" does not exist'),
    ("alter view jobs rename column shade to hue", 'column "shade" does not exist'),
]
"""Changes of which each would leave some client without its answer, and what is said of it."""


@pytest.mark.parametrize(("change", "said"), BREAKS)
def test_a_change_that_breaks_the_first_client_is_noticed(
    changed: Callable[[str], list[str]], change: str, said: str
) -> None:
    """O41."""
    assert [line for line in changed(change) if said in line]


def test_a_column_more_at_the_end_breaks_nobody(changed: Callable[[str], list[str]]) -> None:
    """O41."""
    assert changed("alter type job_answer add attribute more text") == []


def test_every_method_of_the_client_is_among_the_calls() -> None:
    assert calls.CALLS.keys() == calls.methods()


@pytest.mark.skipif(len(freeze.revisions()) > 1, reason="what the first client called is frozen")
def test_the_calls_written_down_are_those_of_the_client(
    connection: psycopg.Connection[Any],
) -> None:
    assert surface.surface(connection) == LINES, "make first-schema"
