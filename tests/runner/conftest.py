"""An app on each backend, and runners that are always stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest

from tenure import Tenure, WorkerRunner
from tests.runner.processes import WorkerProcess
from tests.runner.waiting import PATIENCE


class Start(Protocol):
    """Starts a runner of the app, which the end of the test stops."""

    def __call__(self, app: Tenure | None = None, **options: Any) -> WorkerRunner: ...


class Spawn(Protocol):
    """Starts a worker process of the app, which the end of the test kills."""

    def __call__(self, *, under: tuple[str, ...] = (), **options: Any) -> WorkerProcess: ...


@pytest.fixture
def sqlite_app(tmp_path: Path) -> Iterator[Tenure]:
    with Tenure(tmp_path / "jobs.db") as app:
        yield app


@pytest.fixture
def postgres_app(dsn: str) -> Iterator[Tenure]:
    with Tenure(dsn) as app:
        yield app


@pytest.fixture(params=["sqlite", "postgres"])
def app(request: pytest.FixtureRequest) -> Tenure:
    made: Tenure = request.getfixturevalue(f"{request.param}_app")
    return made


@pytest.fixture
def start(request: pytest.FixtureRequest) -> Iterator[Start]:
    with ExitStack() as stack:

        def start(app: Tenure | None = None, **options: Any) -> WorkerRunner:
            runner = (app or request.getfixturevalue("app")).worker(**options)
            stack.callback(runner.stop, timedelta(seconds=PATIENCE))
            runner.start()
            return runner

        yield start


@pytest.fixture
def target(request: pytest.FixtureRequest, app: Tenure, tmp_path: Path) -> str:
    """What opens the app's store in another process."""
    if app.store.kind == "postgresql":
        dsn: str = request.getfixturevalue("dsn")
        return dsn
    return str(tmp_path / "jobs.db")


@pytest.fixture
def spawn(target: str) -> Iterator[Spawn]:
    yield from _spawning(target)


@pytest.fixture
def spawn_sqlite(sqlite_app: Tenure, tmp_path: Path) -> Iterator[Spawn]:
    yield from _spawning(str(tmp_path / "jobs.db"))


@pytest.fixture
def spawn_postgres(postgres_app: Tenure, dsn: str) -> Iterator[Spawn]:
    yield from _spawning(dsn)


def _spawning(target: str) -> Iterator[Spawn]:
    with ExitStack() as stack:

        def spawn(*, under: tuple[str, ...] = (), **options: Any) -> WorkerProcess:
            process = WorkerProcess(target, options, under=under)
            stack.callback(process.close)
            return process

        yield spawn
