"""A server, or one of its sessions, that does not answer for a while."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tenure import Job, JobStatus, Tenure, WorkerRunner
from tenure.backing_postgres import PostgresBacking, PostgresPlane
from tenure.postgres_store import PostgresStore
from tests.runner.waiting import comes, ends, eventually, status_of

LEASE = timedelta(seconds=0.9)
IDLE_SECONDS = 0.4


class Sessions(PostgresBacking):
    """Knows the server processes behind the planes that it opened, in that order."""

    def __init__(self, store: PostgresStore) -> None:
        super().__init__(store)
        self.of_thread: dict[str, list[int]] = {}

    def open(self) -> PostgresPlane:
        plane = super().open()
        thread = threading.current_thread().name
        self.of_thread.setdefault(thread, []).append(plane.connection.info.backend_pid)
        return plane

    def last_of(self, thread: str) -> int:
        eventually(lambda: thread in self.of_thread, f"{thread} had a session")
        return self.of_thread[thread][-1]


@pytest.fixture
def sessions(postgres_app: Tenure) -> Sessions:
    assert isinstance(postgres_app.store, PostgresStore)
    return Sessions(postgres_app.store)


@contextmanager
def running(app: Tenure, sessions: Sessions, **options: Any) -> Iterator[WorkerRunner]:
    settings = {"lease_for": LEASE, "sweep_every": timedelta(seconds=0.1)} | options
    runner = WorkerRunner(sessions, app.tasks, **settings)
    runner.start()
    try:
        yield runner
    finally:
        runner.stop(timedelta(0))


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A session between two statements that keeps its connection and does nothing."""
    try:
        os.kill(pid, signal.SIGSTOP)
        while not is_idle(pid):
            # In a statement it may hold a lock without which nobody else gets on.
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.001)
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def is_idle(pid: int) -> bool:
    """Whether a server process says so in its title."""
    title = Path(f"/proc/{pid}/cmdline")
    return not title.exists() or title.read_text().rstrip("\0 ").endswith("idle")


class Long:
    """A job that runs until it is let go; what it was told in between."""

    def __init__(self, app: Tenure) -> None:
        self.started, self.let_go = threading.Event(), threading.Event()
        self.attempts: list[int] = []
        self.began = 0.0
        self.job_id = 0
        app.task(name="long")(self._run)

    def _run(self, job: Job) -> str:
        self.attempts.append(job.attempt)
        self.began = time.monotonic()
        self.started.set()
        while not self.let_go.wait(0.01):
            job.check()
        return "done"

    def outlasts(self, leases: float) -> None:
        """Wait until it has run for so many leases."""
        eventually(
            lambda: time.monotonic() - self.began > leases * LEASE.total_seconds(), "time passed"
        )


def terminate(app: Tenure, pid: int) -> None:
    assert isinstance(app.store, PostgresStore)
    with app.store.connect() as connection:
        connection.execute("select pg_terminate_backend(%s)", (pid,))


def test_a_terminated_heartbeat_session_costs_no_lease(
    postgres_app: Tenure, sessions: Sessions
) -> None:
    """O08 (a)."""
    app, long = postgres_app, Long(postgres_app)
    job_id = app.enqueue("long").job_id
    with running(app, sessions):
        comes(long.started, "the job started")
        terminate(app, sessions.last_of("tenure-heartbeat"))
        long.outlasts(3)
        long.let_go.set()
        ends(app, job_id, JobStatus.COMPLETED)

    assert long.attempts == [1]
    assert len(sessions.of_thread["tenure-heartbeat"]) == 2


def test_a_blocked_heartbeat_session_is_replaced_before_any_lease_is_lost(
    postgres_app: Tenure, sessions: Sessions
) -> None:
    """O08 (b), for a single session: a beat is sent again over a new one."""
    app, long = postgres_app, Long(postgres_app)
    job_id = app.enqueue("long").job_id
    with running(app, sessions):
        comes(long.started, "the job started")
        with stopped(sessions.last_of("tenure-heartbeat")):
            long.outlasts(3)
            assert len(sessions.of_thread["tenure-heartbeat"]) == 2
            long.let_go.set()
            ends(app, job_id, JobStatus.COMPLETED)

    assert long.attempts == [1]


def test_a_heartbeat_that_gets_no_answer_at_all_is_the_end_of_the_lease_and_not_of_the_worker(
    postgres_app: Tenure, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O08 (b): told lost at the end of the lease by the monotonic clock, nothing is completed,
    and the worker goes on with other jobs."""
    app = postgres_app
    told: list[tuple[float, float]] = []

    @app.task(retry_base=timedelta(0))
    def long(job: Job) -> str:
        if job.attempt > 1:
            return "second"
        began = time.monotonic()
        try:
            eventually(job.check, "never")
        except BaseException:
            told.append((began, time.monotonic()))
            raise
        return "first"

    def unanswered(*_: object, **__: object) -> Any:
        raise psycopg.OperationalError("no answer")

    with running(app, sessions, slots=1) as runner:
        monkeypatch.setattr(runner._heartbeat, "_renew", unanswered)
        job_id = app.enqueue(long).job_id
        ends(app, job_id, JobStatus.COMPLETED)

    [(began, lost)] = told
    assert lost - began <= LEASE.total_seconds() + 0.2
    record = app.job(job_id)
    assert record is not None
    assert (record.result, record.attempt) == ("second", 2)


def test_a_blocked_settling_session_holds_nothing_up_for_longer_than_its_patience(
    postgres_app: Tenure, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.runner.SHORTEST_PATIENCE", LEASE)
    app = postgres_app

    @app.task
    def work(job: Job) -> None: ...

    with running(app, sessions):
        ends(app, app.enqueue(work).job_id, JobStatus.COMPLETED)
        with stopped(sessions.last_of("tenure-settler")):
            job_ids = [app.enqueue(work).job_id for _ in range(3)]
            for job_id in job_ids:
                ends(app, job_id, JobStatus.COMPLETED)

    for job_id in job_ids:
        record = app.job(job_id)
        assert record is not None
        assert record.attempt == 1


def test_a_blocked_claiming_session_gives_its_leases_to_nobody(
    postgres_app: Tenure, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the stopped session claims once it goes on is given back uncharged."""
    monkeypatch.setattr("tenure.runner.SHORTEST_PATIENCE", LEASE)
    app = postgres_app
    starts: list[int] = []

    @app.task
    def work(job: Job) -> None:
        starts.append(job.attempt)

    with running(app, sessions) as runner:
        ends(app, app.enqueue(work).job_id, JobStatus.COMPLETED)
        before = runner.worker_id
        with stopped(sessions.last_of("tenure-runner")):
            job_id = app.enqueue(work).job_id
            ends(app, job_id, JobStatus.COMPLETED)
        last = app.enqueue(work).job_id
        ends(app, last, JobStatus.COMPLETED)

    assert starts == [1, 1, 1]
    assert runner.worker_id != before


def test_connections_that_the_server_ends_when_idle_are_never_seen_to_be_gone(
    postgres_app: Tenure, dsn: str, sessions: Sessions
) -> None:
    """O36: idle_session_timeout."""
    app = postgres_app
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            f"alter database {connection.info.dbname} set idle_session_timeout = '{IDLE_SECONDS} s'"
        )
    ran: list[int] = []

    @app.task
    def work(job: Job) -> None:
        ran.append(job.attempt)

    with running(app, sessions, poll_floor=timedelta(seconds=0.05)):
        for _ in range(2):
            job_id = app.enqueue(work).job_id
            ends(app, job_id, JobStatus.COMPLETED)
            known = set(sessions.of_thread["tenure-settler"])
            eventually(lambda known=known: not alive(dsn, known), "the idle sessions were ended")  # type: ignore[misc]

    assert ran == [1, 1]
    assert len(sessions.of_thread["tenure-settler"]) == 2


def alive(dsn: str, pids: set[int]) -> bool:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return bool(
            connection.execute(
                "select from pg_stat_activity where pid = any(%s)", (list(pids),)
            ).fetchall()
        )


def test_handlers_that_wait_for_the_database_hold_up_no_outcome_and_no_beat(
    postgres_app: Tenure, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O36: no connection of the runner's is one that handlers can take."""
    monkeypatch.setattr("tenure.runner.SHORTEST_PATIENCE", 4 * LEASE)
    app = postgres_app
    ready, go_on = threading.Event(), threading.Event()
    noted: list[bool] = []

    @app.task
    def notes(job: Job) -> None:
        assert job.progress(1)
        ready.set()
        assert go_on.wait(15)
        noted.append(job.progress(2))

    @app.task
    def work(job: Job) -> None: ...

    with running(app, sessions, slots=2):
        noting = app.enqueue(notes).job_id
        comes(ready, "progress was noted")
        [session] = [
            pids[-1] for name, pids in sessions.of_thread.items() if name.startswith("tenure-slot")
        ]
        with stopped(session):
            go_on.set()
            for _ in range(3):
                ends(app, app.enqueue(work).job_id, JobStatus.COMPLETED)
            eventually(lambda: noted, "the handler was told that it cannot be noted now")
        ends(app, noting, JobStatus.COMPLETED)

    record = app.job(noting)
    assert record is not None
    assert (record.attempt, noted) == (1, [False])


def test_an_outage_of_all_connections_is_waited_out(
    postgres_app: Tenure, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    """O36: jobs that run keep what they came to, and what is enqueued afterwards is started."""
    app = postgres_app
    started, let_go = threading.Event(), threading.Event()

    @app.task
    def work(job: Job) -> str:
        started.set()
        assert let_go.wait(15)
        return "kept"

    runner = app.worker(lease_for=timedelta(seconds=30), poll_floor=timedelta(seconds=0.5))
    runner.start()
    try:
        during = app.enqueue(work).job_id
        comes(started, "the job started")
        app.close()
        with no_connections(dsn):
            let_go.set()
            for what in ("outcomes could not be written", "cannot claim"):
                eventually(lambda what=what: what in caplog.text, f"it said: {what}")  # type: ignore[misc]
        ends(app, during, JobStatus.COMPLETED)
        afterwards = app.enqueue(work).job_id
        ends(app, afterwards, JobStatus.COMPLETED)
    finally:
        runner.stop()

    record = app.job(during)
    assert record is not None
    assert (record.attempt, record.result) == (1, "kept")


@contextmanager
def no_connections(dsn: str) -> Iterator[None]:
    """No session of the database lives, and none begins."""
    name = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
    elsewhere = psycopg.conninfo.make_conninfo(dsn, dbname="postgres")
    with psycopg.connect(elsewhere, autocommit=True) as connection:
        connection.execute(f'alter database "{name}" allow_connections false')
        try:
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", (name,)
            )
            yield
        finally:
            connection.execute(f'alter database "{name}" allow_connections true')


def test_a_process_that_was_stopped_for_long_loses_its_job_and_writes_nothing(
    postgres_app: Tenure, spawn_postgres: Any
) -> None:
    """SIGSTOP, SIGCONT: the monotonic clock went on."""
    app = postgres_app
    job_id = app.enqueue("nap", 0.5, retry_base=timedelta(0)).job_id
    first = spawn_postgres(slots=1, lease_for=0.3, sweep_every=0.1)
    first.waits_for("nap")
    first.signal(signal.SIGSTOP)
    second = spawn_postgres(slots=1, lease_for=0.3, sweep_every=0.1)
    ends(app, job_id, JobStatus.COMPLETED)
    assert second.said == [f"nap {job_id} 2"]

    first.signal(signal.SIGCONT)

    first.logs("is lost, its outcome is dropped")
    first.signal(signal.SIGTERM)
    assert first.ends() == 0
    assert status_of(app, job_id) is JobStatus.COMPLETED
