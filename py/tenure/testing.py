"""For the tests of applications: their jobs in a file that is quick and soon gone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tenure.app import Tenure
from tenure.producer import Producer
from tenure.sqlite_file import relax
from tenure.sqlite_store import SqliteStore


@contextmanager
def temporary(app: Tenure, folder: str | os.PathLike[str] | None = None) -> Iterator[Tenure]:
    """Have an app keep its jobs in a new SQLite file until the block ends.

    Its tasks stay, so what the application enqueues meanwhile can be looked at with
    `app.enqueued()` and run with `app.drain()`. The file is made in `folder`, which is the
    caller's to remove; None: in a folder of its own. Commits to it are not written through, so
    that a test costs milliseconds.
    """
    with TemporaryDirectory(prefix="tenure-") as own:
        path = Path(own if folder is None else folder) / "jobs.db"
        relax(path)
        before = app.store, app.producer
        app.store = SqliteStore(path)
        app.producer = Producer(app.store, schema=app.schema)
        try:
            yield app
        finally:
            app.close()
            app.store, app.producer = before


def fixture(app: Tenure) -> Callable[..., Iterator[Tenure]]:
    """A pytest fixture that is the app, on a new file for each test; see `temporary`.

    For a conftest.py: `jobs = tenure.testing.fixture(app)`.
    """
    import pytest

    @pytest.fixture
    def jobs(tmp_path: Path) -> Iterator[Tenure]:
        with temporary(app, tmp_path):
            yield app

    return jobs
