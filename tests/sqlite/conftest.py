"""A file of tenure for each test."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tenure import sqlite_file
from tenure.sqlite import SqliteControlPlane
from tenure.sqlite_records import SqliteRecords

START = datetime(2031, 5, 6, 7, 8, 9, 123_456, tzinfo=UTC)


class Clock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def advance(self, by: timedelta) -> None:
        self.now += by


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def control_plane(path: Path, clock: Clock) -> Iterator[SqliteControlPlane]:
    with closing(SqliteControlPlane(path, clock=clock)) as plane:
        yield plane


@pytest.fixture
def records(control_plane: SqliteControlPlane, clock: Clock) -> Iterator[SqliteRecords]:
    with closing(SqliteRecords(control_plane.path, clock=clock)) as records:
        yield records


@pytest.fixture
def raw(control_plane: SqliteControlPlane) -> Iterator[sqlite3.Connection]:
    """A connection of an application to the same file, in autocommit mode."""
    with closing(sqlite3.connect(control_plane.path, isolation_level=None)) as connection:
        yield connection


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for long for the file."""
    monkeypatch.setattr(sqlite_file, "PATIENCE", timedelta(milliseconds=30))
    monkeypatch.setattr(sqlite_file, "WORKER_PATIENCE", timedelta(milliseconds=30))
