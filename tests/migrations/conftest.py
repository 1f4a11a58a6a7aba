"""The first schema with its jobs, as it was left and as it came to head."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.migrations.first_schema.restored import WAYS, Aged, Left, left, restored, stand_still
from tests.postgres.races import connected
from tests.tools import databases


@pytest.fixture(scope="session")
def first() -> Iterator[str]:
    """The fixture as it is, never upgraded."""
    with restored() as name:
        yield name


@pytest.fixture(scope="session")
def as_left(first: str) -> dict[str, list[Left]]:
    """The jobs before any upgrade, by kind."""
    with restored(first) as name, connected(databases.url(name)) as connection:
        return left(connection)


@pytest.fixture(scope="session")
def at_head(first: str) -> Iterator[Callable[[str], str]]:
    """The name of a database in which the fixture came to head by one of the ways."""
    with ExitStack() as stack:
        made: dict[str, str] = {}

        def make(way: str) -> str:
            if way not in made:
                name = stack.enter_context(restored(first))
                dsn = databases.url(name)
                stand_still(dsn)
                WAYS[way](dsn)
                stand_still(dsn)
                made[way] = name
            return made[way]

        yield make


@pytest.fixture(params=WAYS)
def aged(
    request: pytest.FixtureRequest,
    as_left: dict[str, list[Left]],
    at_head: Callable[[str], str],
) -> Iterator[Aged]:
    with restored(at_head(request.param)) as name, connected(databases.url(name)) as connection:
        yield Aged(connection, as_left)
