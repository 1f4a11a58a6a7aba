"""What keeps a job with its worker, and what does not."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta

import psycopg
import pytest

from tenure import Job, JobLease, JobStatus, Swept, Tenure, Verdict
from tenure.control_plane import ControlPlane
from tenure.postgres import PostgresControlPlane
from tests.runner.conftest import Spawn, Start
from tests.runner.waiting import comes, ends, eventually, status_of

LEASE = timedelta(seconds=0.6)
OFTEN = timedelta(seconds=0.1)


def seconds(leases: float) -> float:
    return leases * LEASE.total_seconds()


def spin(duration: float) -> None:
    end = time.monotonic() + duration
    while time.monotonic() < end:
        pass


def hold_the_interpreter(duration: float) -> None:
    """Sleep in a C call that does not let other threads run, as some extensions compute."""
    ctypes.PyDLL(None).usleep(int(duration * 1e6))


class Watched:
    """A job of one start at a time, with two workers who would have it if it lapsed."""

    def __init__(self, app: Tenure, start: Start, work: Callable[[Job], object]) -> None:
        self.attempts: list[int] = []

        @app.task(retry_base=timedelta(0))
        def long(job: Job) -> int:
            self.attempts.append(job.attempt)
            work(job)
            return job.attempt

        self.job_id = app.enqueue(long).job_id
        for _ in range(2):
            start(app, slots=1, lease_for=LEASE, sweep_every=OFTEN)


@pytest.mark.parametrize("work", [time.sleep, spin])
def test_work_that_blocks_its_thread_or_computes_keeps_its_job(
    app: Tenure, start: Start, work: Callable[[float], None]
) -> None:
    """O04, O06 (a) and (c)."""
    watched = Watched(app, start, lambda job: work(seconds(4)))

    ends(app, watched.job_id, JobStatus.COMPLETED)

    assert watched.attempts == [1]


def test_a_long_query_of_the_handlers_own_keeps_its_job(
    postgres_app: Tenure, dsn: str, start: Start
) -> None:
    """O06 (b)."""

    def query(job: Job) -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute("select pg_sleep(%s)", (seconds(4),))

    watched = Watched(postgres_app, start, query)

    ends(postgres_app, watched.job_id, JobStatus.COMPLETED)

    assert watched.attempts == [1]


def test_a_call_that_keeps_the_interpreter_for_longer_than_a_lease_loses_the_job_cleanly(
    app: Tenure, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """O06 (d): no heartbeat can run meanwhile. It needs a process of its own, or longer leases."""

    def once(job: Job) -> None:
        if job.attempt == 1:
            hold_the_interpreter(seconds(2.5))

    watched = Watched(app, start, once)

    ends(app, watched.job_id, JobStatus.COMPLETED)

    record = app.job(watched.job_id)
    assert record is not None
    assert watched.attempts[:2] == [1, 2]
    assert record.result == watched.attempts[-1], "what the first attempt returned was dropped"
    assert "its outcome is dropped: it was not renewed in time" in caplog.text


def test_a_handler_that_holds_its_own_row_costs_no_other_its_lease(
    postgres_app: Tenure, dsn: str, start: Start
) -> None:
    """O07: the beat skips the row that is held, and calls that lease lapsed, not lost.

    Once the row is free again whoever comes first has the job: its owner or a sweep.
    """
    app = postgres_app
    together = threading.Barrier(3)
    runs: list[str] = []

    @app.task(retry_base=timedelta(0))
    def holds(job: Job) -> str:
        runs.append(job.kind)
        if runs.count("holds") > 1:
            return "done"
        with psycopg.connect(dsn) as connection:
            plane = PostgresControlPlane(connection)
            plane.update_owned(job.job_id, job.worker_id, job.token, progress="half")
            together.wait(15)
            time.sleep(seconds(3))
            job.check()
        return "done"

    @app.task
    def beside(job: Job) -> None:
        runs.append(job.kind)
        together.wait(15)
        end = time.monotonic() + seconds(3)
        while time.monotonic() < end:
            job.check()
            time.sleep(0.01)

    ids = [app.enqueue(task).job_id for task in (holds, beside, beside)]
    start(app, slots=3, lease_for=LEASE, sweep_every=OFTEN)

    for job_id in ids:
        ends(app, job_id, JobStatus.COMPLETED)
    assert runs.count("beside") == 2
    assert runs.count("holds") in (1, 2)


def test_the_job_of_a_killed_worker_is_had_by_a_replacement_that_came_before_the_lapse(
    app: Tenure, spawn: Spawn, start: Start
) -> None:
    """O10: it looks again and again, not at its start alone."""
    attempts: list[int] = []

    @app.task
    def endless(job: Job) -> None:
        attempts.append(job.attempt)

    job_id = app.enqueue(endless, retry_base=timedelta(0)).job_id
    killed = spawn(slots=1, lease_for=2)
    killed.waits_for("endless")
    killed.signal(signal.SIGKILL)
    killed.ends()
    start(app, sweep_every=OFTEN)
    assert status_of(app, job_id) is JobStatus.RUNNING, "the lease is the dead one's still"

    ends(app, job_id, JobStatus.COMPLETED)

    assert attempts == [2]


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        asyncio.CancelledError(),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_handler_raises_ends_its_job_and_nothing_else(
    app: Tenure, start: Start, error: BaseException
) -> None:
    """O35."""

    @app.task(max_attempts=1)
    def raises(job: Job) -> None:
        raise error

    @app.task
    def works(job: Job) -> None: ...

    runner = start(app, slots=1)
    bad, good = app.enqueue(raises).job_id, app.enqueue(works).job_id

    ends(app, bad, JobStatus.FAILED)
    ends(app, good, JobStatus.COMPLETED)
    eventually(lambda: runner.running == 0, "nothing was renewed any more")
    record = app.job(bad)
    assert record is not None
    assert (record.last_error or "").startswith(type(error).__name__)


def test_no_session_of_a_worker_is_in_a_transaction_while_a_handler_runs(
    postgres_app: Tenure, dsn: str, start: Start
) -> None:
    """O16, O17: the claim is visible to all, and a server that ends idle transactions ends none."""
    app = postgres_app
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            f"alter database {connection.info.dbname}"
            " set idle_in_transaction_session_timeout = '100 ms'"
        )
    started, let_go = threading.Event(), threading.Event()

    @app.task
    def long(job: Job) -> None:
        started.set()
        assert let_go.wait(15)

    start(app, lease_for=LEASE)
    # Asleep until it is notified, which an open transaction on the listening session would stop.
    job_id = app.enqueue(long).job_id
    comes(started, "the job started")
    with psycopg.connect(dsn, autocommit=True) as connection:
        end = time.monotonic() + seconds(2)
        while time.monotonic() < end:
            idle = connection.execute(
                """
                select query
                  from pg_stat_activity
                 where datname = current_database()
                   and state like 'idle in transaction%'
                """
            ).fetchall()
            assert idle == []
    assert status_of(app, job_id) is JobStatus.RUNNING
    let_go.set()

    ends(app, job_id, JobStatus.COMPLETED)


def test_a_lapsed_job_is_completed_or_swept_and_never_both(app: Tenure) -> None:
    """O01: its late owner completes while somebody else sweeps, and each has some of the jobs."""
    ids = {app.enqueue("work", retry_base=timedelta(0)).job_id for _ in range(40)}
    swept: list[Swept] = []

    def sweep() -> None:
        with closing(app.store.control_plane()) as plane:
            for _ in range(20):
                swept.extend(plane.sweep("sweeper", 4))

    with closing(app.store.control_plane()) as plane:
        leases = plane.claim(["default"], "late", max_jobs=40, lease_for=timedelta(seconds=0.1))
        eventually(lambda: len(plane.lapsed()) == 40, "the leases lapsed")
        sweeping = threading.Thread(target=sweep)
        sweeping.start()
        verdicts = {lease.job_id: complete(plane, lease) for lease in reversed(leases)}
        sweeping.join(15)

    completed = {job_id for job_id, verdict in verdicts.items() if verdict is Verdict.OK}
    assert {job_id for job_id, verdict in verdicts.items() if verdict is Verdict.LOST} == (
        ids - completed
    )
    assert {one.job_id for one in swept} == ids - completed
    for job_id in ids:
        record = app.job(job_id)
        assert record is not None
        assert (record.status, record.result) == (
            ("completed", "mine") if job_id in completed else ("queued", None)
        )


def complete(plane: ControlPlane, lease: JobLease) -> Verdict:
    while True:
        settled = plane.complete(lease.job_id, lease.worker_id, lease.token, "mine")
        if settled.verdict is not Verdict.DEFERRED:
            return settled.verdict


def test_a_forked_child_of_a_handler_disturbs_neither_the_lease_nor_the_connections(
    app: Tenure, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    @app.task
    def forks(job: Job) -> int:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            os._exit(7)
        _, status = os.waitpid(child, 0)
        time.sleep(seconds(2))
        return os.waitstatus_to_exitcode(status)

    start(app, lease_for=LEASE, sweep_every=OFTEN)
    job_id = app.enqueue(forks).job_id

    ends(app, job_id, JobStatus.COMPLETED)

    record = app.job(job_id)
    assert record is not None
    assert (record.result, record.attempt) == (7, 1)
    assert caplog.text == ""


def test_a_runner_made_before_a_fork_claims_under_a_name_of_each_childs_own(
    sqlite_app: Tenure,
) -> None:
    """As under servers that load the application once, then fork."""
    runner = sqlite_app.worker()
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        runner.run_until_idle()
        os.write(writer, runner.worker_id.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as said:
        name_of_child = said.read()

    runner.run_until_idle()

    assert f":{child}:" in name_of_child
    assert f":{os.getpid()}:" in runner.worker_id
