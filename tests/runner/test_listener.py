"""The listener and the connections of a runner, on a real PostgreSQL."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from tenure import Job, JobStatus, Tenure
from tenure.listener import Listener
from tenure.postgres_store import PostgresStore
from tests.runner.conftest import Start
from tests.runner.waiting import PATIENCE, comes, ends, eventually
from tests.tools.pooler import find_pgbouncer, pgbouncer

LONG = timedelta(seconds=30)


@pytest.fixture
def app(postgres_app: Tenure) -> Tenure:
    return postgres_app


@pytest.fixture
def watcher(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True, application_name="watcher") as connection:
        yield connection


def backends(watcher: psycopg.Connection[Any], query: str) -> list[int]:
    """The sessions of tenure whose last statement is like this."""
    rows = watcher.execute(
        "select pid from pg_stat_activity where datname = current_database()"
        " and application_name = 'tenure' and query like %s",
        (query,),
    ).fetchall()
    return [pid for (pid,) in rows]


def sleeping(watcher: psycopg.Connection[Any]) -> list[int]:
    """The sessions that show a sleeper's key."""
    rows = watcher.execute(
        "select distinct pid from pg_locks where locktype = 'advisory' and mode = 'ShareLock'"
        " and database = (select oid from pg_database where datname = current_database())"
    ).fetchall()
    return [pid for (pid,) in rows]


def falls_asleep(watcher: psycopg.Connection[Any]) -> int:
    """Wait until the only sleeper dozes, which is when it has asked for the next due time."""
    eventually(
        lambda: set(sleeping(watcher)) & set(backends(watcher, "%next_due(%")),
        "the runner fell asleep",
    )
    [pid] = sleeping(watcher)
    return pid


def another_sleeps(watcher: psycopg.Connection[Any], pid: int) -> bool:
    return bool(set(sleeping(watcher)) - {pid})


def test_a_sleeping_runner_is_woken_by_a_commit(
    app: Tenure, start: Start, watcher: psycopg.Connection[Any], dsn: str
) -> None:
    @app.task
    def work(job: Job) -> None: ...

    start(poll_floor=LONG)
    falls_asleep(watcher)

    with psycopg.connect(dsn) as connection:
        job_id = app.enqueue(work, connection=connection).job_id
        connection.commit()

    ends(app, job_id, JobStatus.COMPLETED)


def test_a_sleeping_runner_starts_a_job_when_it_becomes_due(
    app: Tenure, start: Start, watcher: psycopg.Connection[Any]
) -> None:
    @app.task
    def work(job: Job) -> None: ...

    start(poll_floor=LONG)
    falls_asleep(watcher)

    # Notified at once, because it is due before the poll floor; claimed at its due time.
    job_id = app.enqueue(work, delay=timedelta(seconds=0.5)).job_id

    ends(app, job_id, JobStatus.COMPLETED)


def test_a_terminated_listener_listens_again_and_wakes_the_runner(
    app: Tenure, start: Start, watcher: psycopg.Connection[Any]
) -> None:
    """O14."""

    @app.task
    def work(job: Job) -> None: ...

    start(poll_floor=LONG)
    for _ in range(2):
        pid = falls_asleep(watcher)
        watcher.execute("select pg_terminate_backend(%s, 5000)", (pid,))
        eventually(partial(another_sleeps, watcher, pid), "another listener slept")
        falls_asleep(watcher)

        ends(app, app.enqueue(work).job_id, JobStatus.COMPLETED)


def test_a_runner_polls_while_it_cannot_listen(
    app: Tenure, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task
    def work(job: Job) -> None: ...

    def refuse(*_: object) -> bool:
        raise psycopg.OperationalError("no listener today")

    monkeypatch.setattr(Listener, "_listens", refuse)
    start(poll_floor=LONG)

    ends(app, app.enqueue(work).job_id, JobStatus.COMPLETED)


def test_an_accepted_cancellation_is_pushed_to_the_runner(app: Tenure, start: Start) -> None:
    started, told = threading.Event(), threading.Event()

    @app.task
    def until_cancelled(job: Job) -> None:
        started.set()
        try:
            eventually(job.check, "the handler was told")
        finally:
            told.set()

    # The heartbeat comes every 8 hours.
    start(lease_for=timedelta(hours=24))
    job_id = app.enqueue(until_cancelled).job_id
    comes(started, "the job started")

    app.cancel(job_id)

    comes(told, "the handler was told")
    ends(app, job_id, JobStatus.CANCELLED)


def test_a_terminated_heartbeat_connects_again_and_keeps_the_lease(
    app: Tenure, start: Start, watcher: psycopg.Connection[Any]
) -> None:
    let_go = threading.Event()

    @app.task
    def long(job: Job) -> str:
        assert let_go.wait(PATIENCE)
        return f"attempt {job.attempt}"

    start(lease_for=timedelta(seconds=3), sweep_every=timedelta(milliseconds=100))
    job_id = app.enqueue(long).job_id
    eventually(lambda: backends(watcher, "%renew(%"), "the lease was renewed")
    [pid] = backends(watcher, "%renew(%")
    watcher.execute("select pg_terminate_backend(%s, 5000)", (pid,))
    end = lease_end(app, job_id)

    eventually(lambda: lease_end(app, job_id) > end + timedelta(seconds=3), "it was kept")
    let_go.set()

    ends(app, job_id, JobStatus.COMPLETED)
    record = app.job(job_id)
    assert record is not None
    assert record.result == "attempt 1"


def lease_end(app: Tenure, job_id: int) -> Any:
    record = app.job(job_id)
    assert record is not None
    return record.lease_expires_at


def test_a_new_connection_claims_under_a_new_name_and_gives_back_what_nobody_heard_of(
    app: Tenure, start: Start, watcher: psycopg.Connection[Any]
) -> None:
    @app.task(queue="served")
    def work(job: Job) -> int:
        return job.attempt

    runner = start(poll_floor=timedelta(milliseconds=100))
    before = runner.worker_id
    falls_asleep(watcher)
    # A claim whose answer was lost: the database knows the lease, the runner does not.
    job_id = app.enqueue(work, queue="unserved").job_id
    watcher.execute("select tenure.claim_job(%s, %s, '1 hour')", (job_id, before))
    watcher.execute("update tenure.job set queue = 'served' where id = %s", (job_id,))

    for pid in backends(watcher, "%claim(%"):
        watcher.execute("select pg_terminate_backend(%s, 5000)", (pid,))

    ends(app, job_id, JobStatus.COMPLETED)
    record = app.job(job_id)
    assert record is not None
    assert record.result == 1
    assert runner.worker_id != before


def test_what_is_known_under_an_earlier_name_is_kept(
    app: Tenure, start: Start, watcher: psycopg.Connection[Any]
) -> None:
    let_go, started = threading.Event(), threading.Event()

    @app.task
    def long(job: Job) -> int:
        started.set()
        assert let_go.wait(PATIENCE)
        return job.attempt

    runner = start(lease_for=timedelta(seconds=3), poll_floor=timedelta(milliseconds=100))
    before = runner.worker_id
    job_id = app.enqueue(long).job_id
    comes(started, "the job started")
    for pid in backends(watcher, "%claim(%"):
        watcher.execute("select pg_terminate_backend(%s, 5000)", (pid,))
    eventually(lambda: runner.worker_id != before, "the runner took a new name")
    end = lease_end(app, job_id)
    eventually(lambda: lease_end(app, job_id) > end, "the lease was renewed under the old name")
    let_go.set()

    ends(app, job_id, JobStatus.COMPLETED)
    record = app.job(job_id)
    assert record is not None
    assert record.result == 1


def test_a_pooler_that_pools_transactions_is_found_out_and_polled_through(
    fresh_dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    """O21."""
    program = find_pgbouncer()
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("pgbouncer is missing: .ci/run installs it with apt-get")
        pytest.skip("pgbouncer is not installed: apt-get install pgbouncer")
    dbname = str(psycopg.conninfo.conninfo_to_dict(fresh_dsn)["dbname"])
    with pgbouncer(program, dbname) as pooled, Tenure(pooled, prepare_threshold=None) as app:

        @app.task
        def work(job: Job) -> None: ...

        runner = app.worker()
        runner.start()
        try:
            eventually(lambda: "pools transactions" in caplog.text, "the pooler was found out")
            for _ in range(2):
                ends(app, app.enqueue(work).job_id, JobStatus.COMPLETED)
        finally:
            runner.stop()

        assert caplog.text.count("pools transactions") == 1
    with psycopg.connect(fresh_dsn) as connection:
        keys = connection.execute(
            "select count(*) from pg_locks where locktype = 'advisory'"
            " and database = (select oid from pg_database where datname = current_database())"
        ).fetchone()
    assert keys == (0,)


def test_a_question_to_a_listener_that_is_down_is_refused(dsn: str) -> None:
    store = PostgresStore(dsn)
    changed = threading.Event()
    listener = Listener(
        store.connect, schema="tenure", heard=lambda payload: None, changed=changed.set
    )
    with pytest.raises(Exception, match="has no connection"):
        listener.ask(lambda signals: signals.channel())
    listener.start()
    comes(changed, "it came up")

    assert listener.ask(lambda signals: signals.channel()).startswith("tenure_")

    listener.close()
    with pytest.raises(Exception, match="has no connection"):
        listener.ask(lambda signals: signals.channel())


def test_what_is_notified_while_the_listener_answers_is_heard(dsn: str) -> None:
    """O15."""
    store = PostgresStore(dsn)
    up, heard = threading.Event(), threading.Event()
    listener = Listener(
        store.connect, schema="tenure", heard=lambda payload: heard.set(), changed=up.set
    )
    listener.start()
    comes(up, "it came up")
    with psycopg.connect(dsn, autocommit=True) as other:

        def meanwhile(signals: Any) -> None:
            other.execute("select pg_notify(%s, 'q*')", (signals.channel(),))
            signals.schema_version()

        listener.ask(meanwhile)

    comes(heard, "the notification was heard")
    listener.close()


def test_nobody_is_left_in_a_transaction(
    app: Tenure, start: Start, watcher: psycopg.Connection[Any]
) -> None:
    let_go, started = threading.Event(), threading.Event()

    @app.task
    def long(job: Job) -> None:
        job.progress("here")
        started.set()
        assert let_go.wait(PATIENCE)

    start(slots=2)
    job_id = app.enqueue(long).job_id
    comes(started, "the job started")
    falls_asleep(watcher)

    states = watcher.execute(
        "select distinct state from pg_stat_activity where application_name = 'tenure'"
        " and datname = current_database()"
    ).fetchall()
    let_go.set()

    assert states == [("idle",)]
    ends(app, job_id, JobStatus.COMPLETED)
