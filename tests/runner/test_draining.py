"""What tests of applications use: drain, enqueued, and an app on a file of the test's own."""

from __future__ import annotations

import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import tenure.testing
from tenure import Drained, Job, JobStatus, NewJob, Tenure, Verdict
from tests.runner.waiting import eventually

HOUR = timedelta(hours=1)


def test_a_drain_runs_what_is_due_in_order_and_says_what_it_came_to(app: Tenure) -> None:
    threads: set[threading.Thread] = set()

    @app.task
    def double(job: Job) -> int:
        threads.add(threading.current_thread())
        return int(job.payload) * 2

    @app.task(max_attempts=1)
    def fails(job: Job) -> None:
        raise OSError("refused")

    @app.task(queue="mail")
    async def awaits(job: Job) -> str:
        return "awaited"

    mail = app.enqueue(awaits).job_id
    added = app.enqueue_many([app.new_job(double, n, priority=9 - n) for n in range(3)])
    failing = app.enqueue(fails, priority=9).job_id
    later = app.enqueue(double, 7, delay=HOUR).job_id

    drained = app.drain()

    def done(job_id: int, kind: str, status: JobStatus, result: Any) -> Drained:
        return Drained(job_id=job_id, kind=kind, attempt=1, status=status, result=result)

    ids = [answer.job_id for answer in added]
    assert drained == [
        done(ids[2], "double", JobStatus.COMPLETED, 4),
        done(ids[1], "double", JobStatus.COMPLETED, 2),
        done(ids[0], "double", JobStatus.COMPLETED, 0),
        done(failing, "fails", JobStatus.FAILED, None),
        done(mail, "awaits", JobStatus.COMPLETED, "awaited"),
    ]
    assert [str(outcome.error) for outcome in drained if outcome.error] == ["refused"]
    assert threads == {threading.current_thread()}
    assert [job.job_id for job in app.enqueued()] == [later]


def test_a_drain_runs_the_jobs_that_jobs_enqueue_and_stops_at_its_limit(app: Tenure) -> None:
    @app.task
    def again(job: Job) -> None:
        app.enqueue(again, job.payload + 1)

    app.enqueue(again, 0)

    assert len(app.drain(limit=5)) == 5
    assert [job.payload for job in app.enqueued()] == [5]
    assert app.drain(limit=0) == []


def test_a_drain_sweeps_first(app: Tenure) -> None:
    app.task(name="work", retry_base=timedelta(0))(lambda job: job.attempt)
    job_id = app.enqueue("work").job_id
    with closing(app.store.control_plane()) as plane:
        lease = plane.claim_job(job_id, "gone", lease_for=timedelta(milliseconds=100))
        assert lease is not None
        eventually(plane.lapsed, "the lease lapsed")

    [outcome] = app.drain()

    assert (outcome.attempt, outcome.result) == (2, 2)


def test_a_drain_serves_the_queues_that_it_is_told(app: Tenure) -> None:
    app.task(name="work", queue="mail")(lambda job: None)
    app.enqueue("work")

    assert app.drain(queues=["default"]) == []
    assert len(app.drain(queues=["mail"])) == 1


def test_a_job_is_completed_in_its_own_transaction_by_a_drain(app: Tenure) -> None:
    @app.task
    def effects(job: Job) -> None:
        with job.transaction() as connection:
            connection.execute("select 1")

    app.enqueue(effects)

    [outcome] = app.drain()

    assert (outcome.status, outcome.error) == ("completed", None)


def test_what_is_enqueued_is_listed_oldest_first_by_kind_and_queue(app: Tenure) -> None:
    @app.task
    def welcome(job: Job) -> None: ...

    first = app.enqueue(welcome).job_id
    mail = app.enqueue("other", queue="mail").job_id
    last = app.enqueue(welcome, delay=HOUR).job_id
    cancelled = app.enqueue(welcome).job_id
    assert app.cancel(cancelled).verdict is Verdict.OK

    def ids(**only: Any) -> list[int]:
        return [job.job_id for job in app.enqueued(**only)]

    assert ids() == [first, mail, last]
    assert ids(kind=welcome) == ids(kind="welcome") == [first, last]
    assert ids(queue="mail") == ids(kind="other") == [mail]
    assert ids(kind=welcome, queue="mail") == []


def test_an_app_is_on_a_file_of_its_own_until_the_block_ends(
    sqlite_app: Tenure, tmp_path: Path
) -> None:
    sqlite_app.task(name="work")(lambda job: None)
    kept = sqlite_app.enqueue("work").job_id
    before = sqlite_app.store

    with tenure.testing.temporary(sqlite_app) as app:
        assert app is sqlite_app
        assert app.enqueued() == []
        handle = app.enqueue("work")
        assert [outcome.job_id for outcome in app.drain()] == [handle.job_id]
        assert handle.result(timeout=0) is None

    assert sqlite_app.store is before
    assert [job.job_id for job in sqlite_app.enqueued()] == [kept]


def test_only_the_file_of_a_test_is_not_written_through(tmp_path: Path) -> None:
    def written_through(app: Tenure) -> bool:
        with closing(app.store.control_plane()) as plane:
            plane.enqueue_many([NewJob(kind="work")])
            database: Any = plane
            level = database._database.read(lambda t: t.one("pragma synchronous")["synchronous"])
            return bool(level > 0)

    with Tenure(tmp_path / "kept.db") as app:
        assert written_through(app)
        with tenure.testing.temporary(app):
            assert not written_through(app)


@pytest.fixture
def plain_app(tmp_path: Path) -> Tenure:
    """One that no fixture closes."""
    return Tenure(tmp_path / "plain.db")


def test_an_app_that_was_elsewhere_for_a_test_can_be_used_again(plain_app: Tenure) -> None:
    with tenure.testing.temporary(plain_app):
        plain_app.enqueue("work")
    plain_app.enqueue("work")

    assert len(plain_app.enqueued()) == 1
    plain_app.close()
