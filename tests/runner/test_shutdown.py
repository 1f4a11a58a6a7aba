"""Signals, given to real processes."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from tenure import JobStatus, Tenure
from tests.runner.conftest import Spawn
from tests.runner.waiting import PATIENCE, eventually, status_of

SIGNALS = [signal.SIGTERM, signal.SIGINT]

# A namespace of processes in which the command is number 1, as in a container.
AS_PID_1 = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


@contextmanager
def held(target: str, job_id: int) -> Iterator[None]:
    """Keep everybody else from ending the job."""
    if target.startswith("postgresql:"):
        with psycopg.connect(target) as connection:
            connection.execute("select from tenure.job where id = %s for update", (job_id,))
            yield
            connection.rollback()
    else:
        with closing(sqlite3.connect(target, isolation_level=None)) as file:
            file.execute("begin immediate")
            yield
            file.execute("rollback")


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_lets_the_running_job_end_and_the_process_return(
    app: Tenure, spawn: Spawn, number: signal.Signals
) -> None:
    running = app.enqueue("until_stopping").job_id
    worker = spawn(slots=1, grace=PATIENCE)
    worker.waits_for("until_stopping")
    waiting = app.enqueue("until_stopping").job_id

    worker.signal(number)

    assert worker.ends() == 0
    assert worker.said[-1] == "returned"
    assert status_of(app, running) is JobStatus.COMPLETED
    assert status_of(app, waiting) is JobStatus.QUEUED


def test_every_kind_of_job_is_accounted_for_when_a_worker_is_told_to_stop(
    app: Tenure, spawn: Spawn, target: str
) -> None:
    """O34: one that ends in time, one that does not, one inside its fail, two not started."""
    short, endless, failing, next_ = (
        app.enqueue(kind, payload).job_id
        # The fourth gets the place of the third, which needs it no longer to write its failure.
        for kind, payload in [("nap", 1), ("endless", None), ("fails", None), ("endless", None)]
    )
    unstarted = [app.enqueue("nap", 0).job_id for _ in range(2)]
    worker = spawn(slots=3, grace=2.5, ahead=4, gate="fails")
    eventually(lambda: len(worker.said) == 3, "three jobs ran")
    eventually(lambda: status_of(app, unstarted[1]) is JobStatus.RUNNING, "the others waited")
    began = time.monotonic()
    with held(target, failing):
        worker.says("go on")
        worker.waits_for("endless", 2)
        worker.signal(signal.SIGTERM)
        worker.logs("stops")
    eventually(
        lambda: all(status_of(app, job_id) is JobStatus.QUEUED for job_id in unstarted),
        "what had not started was given back",
    )
    assert not worker.dead, "at once, not after the grace"

    assert worker.ends() == 0
    assert time.monotonic() - began < 2.5 + PATIENCE / 3
    outcome = {}
    for job_id in (short, endless, failing, next_, *unstarted):
        record = app.job(job_id)
        assert record is not None
        outcome[job_id] = (record.status, record.attempt, record.last_error)
    assert outcome == {
        short: ("completed", 1, None),
        endless: ("queued", 1, None),
        next_: ("queued", 1, None),
        failing: ("queued", 1, "RuntimeError: as it was told to"),
        unstarted[0]: ("queued", 0, None),
        unstarted[1]: ("queued", 0, None),
    }
    another = spawn(slots=4)
    another.waits_for("endless", 2)
    another.waits_for("nap", 2)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_second_signal_ends_the_process_at_once(
    app: Tenure, spawn: Spawn, number: signal.Signals
) -> None:
    job_id = app.enqueue("endless").job_id
    worker = spawn(slots=1, grace=3600)
    worker.waits_for("endless")

    worker.signal(number)
    worker.logs("stops")
    worker.signal(number)

    assert worker.ends() == 128 + number
    assert status_of(app, job_id) is JobStatus.RUNNING


def test_a_signal_stops_the_worker_also_as_process_1_behind_a_shell(
    sqlite_app: Tenure, spawn_sqlite: Spawn
) -> None:
    """O34: process 1 gets no signal that it has no handler for, and a shell passes none on,
    so it says exec."""
    if subprocess.run([*AS_PID_1, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not make a namespace of processes")
    job_id = sqlite_app.enqueue("until_stopping").job_id
    worker = spawn_sqlite(
        under=(*AS_PID_1, "sh", "-c", 'echo shell $$ 1; exec "$@"', "sh"), grace=PATIENCE
    )
    worker.waits_for("until_stopping")
    assert worker.said[0] == "shell 1 1"

    [process_1] = children_of(worker.process.pid)
    worker.signal(signal.SIGTERM, to=process_1)

    assert worker.ends() == 0
    assert status_of(sqlite_app, job_id) is JobStatus.COMPLETED


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
