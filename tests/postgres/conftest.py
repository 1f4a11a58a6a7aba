"""Sessions and a clock for tests of what only PostgreSQL can do or get wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.postgres.races import Connection, Gate, SteppedClock, connected


@pytest.fixture
def session(dsn: str) -> Iterator[Callable[[], Connection]]:
    """Opens sessions on the test's database; those still at work are ended with the test."""
    with connected(dsn) as watcher, ExitStack() as stack:
        opened: list[int] = []

        def new() -> Connection:
            connection = stack.enter_context(connected(dsn))
            opened.append(connection.info.backend_pid)
            return connection

        yield new
        watcher.execute(
            """
            select pg_terminate_backend(a.pid)
              from pg_stat_activity as a
             where a.pid = any (%s) and a.state <> 'idle'
            """,
            [opened],
        )


@pytest.fixture
def clock(session: Callable[[], Connection]) -> SteppedClock:
    """Time that stands still until the test moves it."""
    return SteppedClock(session())


@pytest.fixture
def gate(session: Callable[[], Connection]) -> Gate:
    return Gate(session())


@pytest.fixture
def watcher(session: Callable[[], Connection]) -> Connection:
    """A session that looks on."""
    return session()
