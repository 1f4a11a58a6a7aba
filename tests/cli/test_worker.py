"""`tenure worker`, as a process of its own, and how it finds its app."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tenure.cli_app import load_app
from tenure.cli_worker import served
from tenure.errors import InvalidArgument
from tests.cli.conftest import Tenure

APP = """
from tenure.app import Tenure

app = Tenure({target!r})

@app.task
def double(job):
    print("doubling", flush=True)
    return job.payload * 2

@app.task(queue="other")
def hold(job):
    print("holding", flush=True)
    while True:
        job.check()

class shop:
    app = app
"""


@pytest.fixture
def folder(tmp_path: Path, file: Path) -> Path:
    """Where a module `jobs` has an app for `file`."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "jobs.py").write_text(APP.format(target=str(file)))
    return folder


def _worker(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name != "TENURE_DSN"}
    return subprocess.Popen(
        [sys.executable, "-m", "tenure", "worker", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_drain_works_off_what_is_due_and_ends(tenure: Tenure, folder: Path) -> None:
    for number in range(3):
        tenure("enqueue", "double", number)
    tenure("enqueue", "double", 7, "--delay", "1h")
    worker = _worker(folder, "jobs:app", "--drain", "--queue", "default=2")
    out, err = worker.communicate(timeout=30)
    assert worker.returncode == 0, err
    assert out.count("doubling") == 3
    listed = tenure("jobs", "--json").json
    assert [job["result"] for job in listed] == [None, 4, 2, 0]
    assert listed[0]["shade"] == "scheduled"


def test_a_worker_ends_with_0_after_sigterm_and_gives_back_what_it_ran(
    tenure: Tenure, folder: Path
) -> None:
    tenure("enqueue", "hold", "--queue", "other")
    worker = _worker(folder, "jobs:shop.app", "--queue", "other", "--slots", "1", "--grace", "0s")
    with worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "holding\n"
        worker.send_signal(signal.SIGTERM)
        _, err = worker.communicate(timeout=30)
    assert worker.returncode == 0, err
    job = tenure("show", 1, "--json").json
    assert job["status"] == "queued"
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["released"]


def test_another_database_than_the_app_s_can_be_named(
    tenure: Tenure, folder: Path, tmp_path: Path
) -> None:
    other = str(tmp_path / "other.db")
    worker = _worker(folder, "jobs:app", "--drain", "--dsn", other)
    _, err = worker.communicate(timeout=30)
    assert worker.returncode == 1
    assert err == f"tenure: there is no file {other} (run: tenure migrate)\n"

    tenure("migrate", "--dsn", other)
    tenure("enqueue", "double", 4, "--dsn", other)
    worker = _worker(folder, "jobs:app", "--drain", "--dsn", other, "--log-level", "error")
    _, err = worker.communicate(timeout=30)
    assert (worker.returncode, err) == (0, "")
    assert tenure("show", 1, "--json", "--dsn", other).json["result"] == 8


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("jobs", "'jobs' is not MODULE:APP"),
        (":app", "':app' is not MODULE:APP"),
        ("nowhere:app", "there is no module 'nowhere'"),
        ("jobs.nowhere:app", "there is no module 'jobs.nowhere'"),
        ("jobs:nothing", "jobs has no 'nothing'"),
        ("jobs:app.nothing", "jobs:app has no 'nothing'"),
        ("jobs:double", "jobs:double is a function, not a Tenure app"),
        ("broken:app", "module 'broken' fails: ZeroDivisionError: division by zero"),
        ("needy:app", "module 'needy' fails: ModuleNotFoundError: No module named 'absent'"),
        ("typo:app", "module 'typo' fails: SyntaxError"),
    ],
)
def test_an_app_that_cannot_be_had_says_which_part_failed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, complaint: str
) -> None:
    (folder / "broken.py").write_text("\n1 / 0\n")
    (folder / "needy.py").write_text("import absent\n")
    (folder / "typo.py").write_text("def\n")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    before = set(sys.modules)
    try:
        with pytest.raises(InvalidArgument) as caught:
            load_app(name)
    finally:
        for module in set(sys.modules) - before:
            del sys.modules[module]
    assert str(caught.value).startswith(complaint)
    if name == "broken:app":
        assert caught.value.hint is not None
        assert caught.value.hint.endswith("broken.py:2")


def test_a_worker_without_an_app_is_one_line(
    bare_tenure: Tenure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    ran = bare_tenure("worker", "nowhere:app")
    assert ran.code == 1
    assert ran.complaint.startswith("tenure: there is no module 'nowhere'")


def test_queues_keep_their_order_and_their_slots() -> None:
    assert list(served(["b", "a"])) == ["b", "a"]
    assert served(["b=2", "a=10"]) == {"b": 2, "a": 10}
    assert list(served(["key=value"])) == ["key=value"]
    with pytest.raises(click.UsageError):
        served(["a=1", "b"])
