"""Every contract test runs once over each database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tenure.control_plane import ControlPlane
from tenure.records import Records
from tests.contract.backends import Backend, Clock, Pool, Postgres, Sqlite
from tests.tools import databases


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "needs(what): skipped, with the reason, on a backend that lacks it"
    )


@pytest.fixture(scope="session")
def shared_pool(template: str) -> Iterator[Pool]:
    """One database for the whole run: a clone for each test would take most of the time."""
    with (
        databases.database(databases.new_name("contract"), template=template) as name,
        closing(Pool(databases.url(name))) as pool,
    ):
        yield pool


def opened(kind: str, request: pytest.FixtureRequest, tmp_path: Path, stack: ExitStack) -> Backend:
    if kind == "postgres":
        return Postgres(request.getfixturevalue("shared_pool"), stack)
    return Sqlite(tmp_path / "tenure.sqlite", stack)


KINDS = ("postgres", "sqlite")


@pytest.fixture(params=KINDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    with ExitStack() as stack:
        made = opened(request.param, request, tmp_path, stack)
        for mark in request.node.iter_markers("needs"):
            [what] = mark.args
            if what in made.lacks:
                pytest.skip(made.lacks[what])
        yield made


@pytest.fixture(scope="module")
def every_backend(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Backend]]:
    """All of them at once, for a module about what must be the same to the letter.

    The tests of that module share them, and none may use `backend` besides.
    """
    with ExitStack() as stack:
        path = tmp_path_factory.mktemp("every")
        yield [opened(kind, request, path, stack) for kind in KINDS]


@pytest.fixture
def control_plane(backend: Backend) -> ControlPlane:
    return backend.control_plane


@pytest.fixture
def records(backend: Backend) -> Records:
    return backend.records


@pytest.fixture
def clock(backend: Backend) -> Clock:
    return backend.clock
