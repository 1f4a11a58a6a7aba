"""Wake-ups of an idle runner while notifications are lost, held back or switched off."""

from __future__ import annotations

import os
import threading
import time
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from tenure import Job, JobStatus, Tenure
from tenure.backing_postgres import PostgresBacking
from tenure.listener import Listener
from tenure.postgres_signals import PostgresSignals
from tenure.waker import EVERY
from tests.runner.conftest import Start
from tests.runner.waiting import PATIENCE, comes, ends, eventually

ROOT = Path(__file__).resolve().parents[2]
POLL_FLOOR = timedelta(seconds=30)
"""Longer than any test waits: a job that starts was not found by polling."""


@pytest.fixture
def app(fresh_dsn: str) -> Iterator[Tenure]:
    with Tenure(fresh_dsn) as app:
        yield app


@pytest.fixture
def admin() -> Iterator[psycopg.Connection[Any]]:
    """A session in another database, which nobody keeps out."""
    with psycopg.connect(os.environ["TENURE_TEST_DSN"], autocommit=True) as connection:
        yield connection


@contextmanager
def refusing(admin: psycopg.Connection[Any], dsn: str) -> Iterator[None]:
    """A server that ends the sessions of a database, and lets no new ones in."""
    name = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
    admin.execute(f'alter database "{name}" with allow_connections false'.encode())
    try:
        admin.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = %s",
            (name,),
        )
        yield
    finally:
        admin.execute(f'alter database "{name}" with allow_connections true'.encode())


def test_an_enqueue_wakes_with_its_own_commit_unless_another_is_about_to(
    app: Tenure, fresh_dsn: str
) -> None:
    """That one would hold up this one: NOTIFY's lock is held across a flush."""
    with (
        psycopg.connect(fresh_dsn, autocommit=True) as sleeper,
        psycopg.connect(fresh_dsn, autocommit=True) as other,
    ):
        signals = PostgresSignals(sleeper)
        assert signals.listen()
        assert signals.sleep_begin(["default"]) is not None
        woken = f"q{signals.queue_key('default')}"

        app.enqueue("work")
        sleeper.execute("select")
        assert [notify.payload for notify in sleeper.notifies(timeout=0)] == [woken]
        assert app.producer._waker._thread is None

        time.sleep(2 * EVERY)
        app.enqueue("work", delay=2 * POLL_FLOOR)
        sleeper.execute("select")
        assert not list(sleeper.notifies(timeout=0))

        with other.transaction():
            other.execute("select tenure.try_wake('{default}')")
            app.enqueue("work")
            [notify] = sleeper.notifies(timeout=PATIENCE, stop_after=1)
        assert notify.payload == woken


def test_a_refused_listener_tries_again_ever_less_often_and_finds_what_came_meanwhile(
    app: Tenure,
    start: Start,
    admin: psycopg.Connection[Any],
    fresh_dsn: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """O14: nothing spins, and that nobody listens can be seen."""
    pauses: list[float] = []

    class Closing(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout or 0.0)
            return super().wait(timeout)

    @app.task
    def work(job: Job) -> None: ...

    runner = start(app, poll_floor=POLL_FLOOR)
    eventually(lambda: runner.listening, "it listened")
    assert isinstance(runner._backing, PostgresBacking)
    ear: Listener = runner._sleeper._ear  # type: ignore[union-attr]
    monkeypatch.setattr(ear, "_closing", Closing())

    with refusing(admin, fresh_dsn):
        eventually(lambda: not runner.listening, "it was seen not to listen")
        eventually(lambda: len(pauses) >= 4, "it tried some times")
    app.close()
    before = app.enqueue(work).job_id

    ends(app, before, JobStatus.COMPLETED)
    eventually(lambda: runner.listening, "it listened again")
    ends(app, app.enqueue(work).job_id, JobStatus.COMPLETED)
    assert "the listener has no connection" in caplog.text
    # Each is at least two thirds of twice the one before.
    first = pauses[:4]
    assert all(0.1 * 2**n * 0.6 <= pause <= 0.1 * 2**n for n, pause in enumerate(first)), first


def test_nobody_but_its_own_thread_uses_the_listeners_connection(
    app: Tenure, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O15: whoever wants to ask over it has the listener ask."""
    users: dict[int, set[str]] = {}
    listening: set[int] = set()
    wait = psycopg.Connection.wait

    def watched(self: Any, *args: Any, **named: Any) -> Any:
        users.setdefault(id(self), set()).add(threading.current_thread().name)
        if threading.current_thread().name == "tenure-listener":
            listening.add(id(self))
        return wait(self, *args, **named)

    monkeypatch.setattr(psycopg.Connection, "wait", watched)

    @app.task
    def work(job: Job) -> None:
        job.progress("here")

    runner = start(app, poll_floor=POLL_FLOOR, lease_for=timedelta(seconds=1))
    eventually(lambda: runner.listening, "it listened")
    for _ in range(5):
        ends(app, app.enqueue(work).job_id, JobStatus.COMPLETED)

    assert listening
    assert {name for key in listening for name in users[key]} == {"tenure-listener"}


def test_a_runner_whose_handlers_all_block_takes_its_notifications(
    app: Tenure, start: Start, admin: psycopg.Connection[Any], fresh_dsn: str
) -> None:
    """O19: what it does not need is read all the same, so the server's queue stays empty."""
    started, let_go = threading.Event(), threading.Event()

    @app.task
    def blocks(job: Job) -> None:
        started.set()
        assert let_go.wait(30)

    runner = start(app, slots=1, poll_floor=POLL_FLOOR)
    eventually(lambda: runner.listening, "it listened")
    app.enqueue(blocks)
    comes(started, "the handler blocked")

    with (
        psycopg.connect(fresh_dsn) as stuck,
        psycopg.connect(fresh_dsn, autocommit=True) as noisy,
    ):
        row = noisy.execute("select tenure.channel()").fetchone()
        assert row is not None
        # Somebody else's session, that does what a listener must not.
        stuck.execute(f'listen "{row[0]}"'.encode())
        stuck.commit()
        stuck.execute("select 1")
        noisy.execute(
            "select pg_notify(%s, n || repeat('x', 7000)) from generate_series(1, 3000) as n", row
        )
        assert usage(admin) > 0
        stuck.rollback()
        stuck.execute("unlisten *")
        stuck.commit()

        eventually(lambda: usage(admin) == 0, "the queue was emptied")
    let_go.set()


def usage(connection: psycopg.Connection[Any]) -> float:
    row = connection.execute("select pg_notification_queue_usage()").fetchone()
    assert row is not None
    return float(row[0])


def test_with_notifications_switched_off_everything_works_by_polling(
    app: Tenure, start: Start, fresh_dsn: str
) -> None:
    """O19: and nobody is notified."""

    @app.task(max_attempts=2, retry_base=timedelta(0))
    def second_time(job: Job) -> str:
        if job.attempt == 1:
            raise OSError("refused")
        return "fine"

    with psycopg.connect(fresh_dsn, autocommit=True) as ear:
        ear.execute("update tenure.install set notify = false")
        row = ear.execute("select tenure.channel()").fetchone()
        assert row is not None
        ear.execute(f'listen "{row[0]}"'.encode())
        runner = start(app, poll_floor=timedelta(seconds=0.3))
        eventually(lambda: runner.listening, "it listened")

        handle = app.enqueue(second_time)

        ends(app, handle.job_id, JobStatus.COMPLETED)
        app.cancel(app.enqueue(second_time, delay=timedelta(hours=1)).job_id)
        ear.execute("select 1")
        heard = [n.payload for n in ear.notifies(timeout=0)]
    # The listener's proofs that it hears are its own.
    assert not [payload for payload in heard if payload[:1] in ("q", "c", "d")]


def test_an_idle_runner_starts_a_job_at_the_commit_of_the_callers_transaction(
    app: Tenure, start: Start, fresh_dsn: str
) -> None:
    """O48: not before, at once then, and never after a rollback, of a savepoint either."""
    ran: dict[str, bool] = {}
    committed = threading.Event()

    @app.task
    def work(job: Job) -> None:
        ran[job.payload] = committed.is_set()

    runner = start(app, poll_floor=POLL_FLOOR)
    eventually(lambda: runner.listening, "it listened")
    engine = create_engine(fresh_dsn.replace("postgresql:", "postgresql+psycopg:"))
    with ExitStack() as stack:
        stack.callback(engine.dispose)
        with Session(engine) as session:
            app.enqueue(work, "rolled back", connection=session)
            session.rollback()
        with Session(engine) as session:
            session.execute(text("create table orders (id int)"))
            with session.begin_nested() as savepoint:
                app.enqueue(work, "with its savepoint", connection=session)
                savepoint.rollback()
            handle = app.enqueue(work, "committed", connection=session)
            # Others come and go meanwhile; the runner looks, and does not see it.
            ends(app, app.enqueue(work, "beside").job_id, JobStatus.COMPLETED)
            assert app.job(handle.job_id) is None
            committed.set()
            session.commit()
        ends(app, handle.job_id, JobStatus.COMPLETED)

    assert ran == {"beside": False, "committed": True}


def test_the_psycopg_that_is_asked_for_loses_no_notifications() -> None:
    """O15: 3.2.4 keeps those that come while a statement runs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    [asked_for] = [line for line in project["dependencies"] if line.startswith("psycopg")]
    assert asked_for == "psycopg[binary]>=3.2.4"
