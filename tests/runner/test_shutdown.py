"""Signals, given to real processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from tenure import JobStatus, Tenure
from tests.runner.waiting import PATIENCE, eventually, status_of

ROOT = Path(__file__).resolve().parents[2]


class Spawn(Protocol):
    """Starts a worker process; the end of the test kills it."""

    def __call__(self, *, grace: float) -> subprocess.Popen[str]: ...


@pytest.fixture
def spawn(request: pytest.FixtureRequest, app: Tenure, tmp_path: Path) -> Iterator[Spawn]:
    target = str(tmp_path / "jobs.db")
    if app.store.kind == "postgresql":
        target = request.getfixturevalue("dsn")
    with ExitStack() as stack:

        def spawn(*, grace: float) -> subprocess.Popen[str]:
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "tests.runner.worker_process", target, str(grace)],
                    cwd=ROOT,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            stack.callback(process.kill)
            return process

        yield spawn


def said(process: subprocess.Popen[str]) -> str:
    """The next line of the process; the test fails by its timeout when none comes."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_running_job_end_and_the_process_return(
    app: Tenure, spawn: Spawn, number: signal.Signals
) -> None:
    running = app.enqueue("until_stopping").job_id
    process = spawn(grace=PATIENCE)
    assert said(process) == "started"
    waiting = app.enqueue("until_stopping").job_id

    process.send_signal(number)

    assert said(process) == "returned"
    assert process.wait(PATIENCE) == 0
    assert status_of(app, running) is JobStatus.COMPLETED
    assert status_of(app, waiting) is JobStatus.QUEUED


def test_a_job_beyond_the_grace_is_handed_back_and_the_exit_code_is_zero(
    app: Tenure, spawn: Spawn
) -> None:
    job_id = app.enqueue("endless").job_id
    process = spawn(grace=0.2)
    assert said(process) == "started"

    process.send_signal(signal.SIGTERM)

    assert process.wait(PATIENCE) == 0
    record = app.job(job_id)
    assert record is not None
    assert (record.status, record.attempt) == ("queued", 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_process_at_once(
    app: Tenure, spawn: Spawn, number: signal.Signals
) -> None:
    job_id = app.enqueue("endless").job_id
    process = spawn(grace=3600)
    assert said(process) == "started"
    stops = lines_of(process)

    process.send_signal(number)
    eventually(lambda: any("stops" in line for line in stops), "the process began to stop")
    process.send_signal(number)

    assert process.wait(PATIENCE) == 128 + number
    assert status_of(app, job_id) is JobStatus.RUNNING


def lines_of(process: subprocess.Popen[str]) -> list[str]:
    """What the process logs, as it comes."""
    assert process.stderr is not None
    lines: list[str] = []
    threading.Thread(target=lines.extend, args=(iter(process.stderr),), daemon=True).start()
    return lines
