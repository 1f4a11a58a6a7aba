"""Which targets name which store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tenure.errors import InvalidArgument, SchemaOutdated, ServerUnavailable
from tenure.postgres_store import PostgresStore
from tenure.sqlite_store import SqliteStore
from tenure.store import open_store


@pytest.mark.parametrize(
    "target",
    [
        "postgresql://u:p@h:1/d",
        "postgres://h/d",
        "postgresql://",
        "postgresql:///d?host=/tmp",
        "host=h dbname='a.db'",
        "dbname=app password=x://y",
    ],
)
def test_a_url_or_a_libpq_string_is_a_postgresql_database(target: str) -> None:
    store = open_store(target, schema="jobs", prepare_threshold=None)
    assert isinstance(store, PostgresStore)
    assert (store.kind, store.dsn, store.schema) == ("postgresql", target, "jobs")


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("jobs.db", "jobs.db"),
        ("/var/lib/a b.sqlite3", "/var/lib/a b.sqlite3"),
        ("./x.sqlite", "x.sqlite"),
        ("sqlite:///jobs", "jobs"),
        ("sqlite:////var/jobs", "/var/jobs"),
        ("sqlite:///a=b.db", "a=b.db"),
    ],
)
def test_a_path_or_an_sqlite_url_is_a_file(target: str, path: str) -> None:
    store = open_store(target)
    assert isinstance(store, SqliteStore)
    assert (store.kind, store.path) == ("sqlite", Path(path))


@pytest.mark.parametrize(
    "target",
    [
        "",
        "jobs",
        "localhost",
        ":memory:",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite://jobs.db",
        "sqlite:///jobs.db?mode=ro",
        "mysql://h/d",
        "postgresql+psycopg://h/d",
        "a=b.db",
        "postgresql://h/d?nonsense=1",
        "a\0.db",
        None,
        Path("jobs.db"),
    ],
)
def test_anything_else_is_refused(target: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        open_store(target)
    assert str(refused.value)[0].islower() or "DSN" in str(refused.value)


def test_a_refusal_says_which_forms_there_are_and_shows_no_password() -> None:
    with pytest.raises(InvalidArgument, match=r"sqlite:///jobs.db") as refused:
        open_store("mysql://u:secret@h/d")
    assert "secret" not in str(refused.value)
    assert "mysql://" in str(refused.value)


def test_a_file_is_made_by_install_and_not_by_a_check(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "jobs.db"))
    with pytest.raises(SchemaOutdated, match="run: tenure migrate"):
        store.check()
    assert os.listdir(tmp_path) == []
    assert store.install()
    store.check()
    plane = store.control_plane()
    job_id = plane.enqueue("mail", "send", {"to": "é"}).job_id
    plane.close()
    job = store.records().job(job_id)
    assert job is not None
    assert job.payload == {"to": "é"}
    [queue] = store.records().queues()
    assert (queue.queue, queue.queued, queue.retrying, queue.running) == ("mail", 1, 0, 0)
    store.close()


def test_an_empty_file_has_no_tenure_and_another_file_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with pytest.raises(SchemaOutdated, match="run: tenure migrate"):
        open_store(str(tmp_path / "empty.db")).check()
    (tmp_path / "text.db").write_text("not a database" * 100)
    with pytest.raises(ServerUnavailable):
        open_store(str(tmp_path / "text.db")).check()
