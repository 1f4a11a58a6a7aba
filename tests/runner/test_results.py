"""Results: waiting for the end of a job, by notification, from history, or in vain."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tenure import (
    Enqueued,
    Handle,
    InvalidArgument,
    Job,
    JobCancelled,
    JobFailed,
    JobUnknown,
    NotEnded,
    ServerUnavailable,
    Tenure,
    TenureError,
)
from tenure.tasks import Task
from tests.runner.conftest import Start
from tests.runner.waiting import PATIENCE, comes, eventually
from tests.tools import databases

SOON = timedelta(seconds=PATIENCE)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(40) as pool:
        yield pool


def waits_for(app: Tenure, *handles: Handle) -> None:
    """Return once the app has arranged to be told that these jobs end."""
    waits = app.producer.results._waits
    eventually(
        lambda: all(handle.job_id in waits._waited for handle in handles) and not waits._unread,
        "the app waits for the jobs",
    )


def test_a_handle_is_the_answer_that_it_always_was(app: Tenure) -> None:
    handle = app.enqueue("a", dedup_key="k")

    assert isinstance(handle, Enqueued)
    assert handle == Enqueued(job_id=handle.job_id, created=True)
    assert Enqueued(job_id=handle.job_id, created=True) == handle
    assert handle != app.enqueue("a", dedup_key="k")
    anything: object = handle.job_id
    assert handle != anything
    assert len({handle, Enqueued(job_id=handle.job_id, created=True)}) == 1
    assert repr(handle) == f"Handle(job_id={handle.job_id}, created=True)"


def test_the_result_comes_when_the_job_completes(
    app: Tenure, start: Start, pool: ThreadPoolExecutor
) -> None:
    @app.task
    def double(job: Job) -> int:
        return int(job.payload) * 2

    handles = app.enqueue_many([app.new_job("double", n) for n in range(40)])
    results = [pool.submit(handle.result, SOON) for handle in handles]
    waits_for(app, *handles)
    start()

    assert [result.result() for result in results] == [2 * n for n in range(40)]


def test_the_result_of_a_job_that_has_ended_comes_from_history(app: Tenure) -> None:
    @app.task
    def answer(job: Job) -> dict[str, Any]:
        return {"given": job.payload}

    handle = app.enqueue(answer, [1, None])
    app.worker().run_until_idle()

    assert handle.result(timeout=0) == {"given": [1, None]}
    assert app.result(handle.job_id) == {"given": [1, None]}


@pytest.mark.parametrize("after", [False, True])
def test_a_failed_job_raises_the_error_that_was_stored(
    app: Tenure, pool: ThreadPoolExecutor, after: bool
) -> None:
    @app.task(max_attempts=2, retry_base=timedelta(0))
    def broken(job: Job) -> None:
        raise ValueError(f"broken at {job.attempt}")

    handle = app.enqueue(broken)
    result: Future[Any] | None = None
    if not after:
        result = pool.submit(handle.result, SOON)
        waits_for(app, handle)
    app.worker().run_until_idle()

    with pytest.raises(JobFailed, match=r"failed: ValueError: broken at 2$") as caught:
        result.result() if result else handle.result()
    assert (caught.value.error_type, caught.value.error_message) == ("ValueError", "broken at 2")


def test_a_job_whose_worker_was_lost_says_so(app: Tenure) -> None:
    handle = app.enqueue("a", max_attempts=1)
    with app.producer.planes.lent() as plane:
        [_] = plane.claim(["default"], "ada", lease_for=timedelta(milliseconds=100))
        eventually(lambda: plane.sweep("bob"), "the lease lapsed")

    with pytest.raises(JobFailed, match="failed: lease lapsed on the last attempt") as caught:
        handle.result()
    assert caught.value.error_type is None


@pytest.mark.parametrize("running", [False, True])
def test_a_cancelled_job_raises_job_cancelled(
    app: Tenure, start: Start, pool: ThreadPoolExecutor, running: bool
) -> None:
    entered = threading.Event()

    @app.task
    def long(job: Job) -> None:
        entered.set()
        while True:
            job.check()
            time.sleep(0.002)

    handle = app.enqueue(long)
    if running:
        start(lease_for=timedelta(milliseconds=300))
        comes(entered, "the handler was entered")
    result = pool.submit(handle.result, SOON)
    waits_for(app, handle)

    app.cancel(handle.job_id)

    with pytest.raises(JobCancelled, match=f"job {handle.job_id} was cancelled"):
        result.result()
    with pytest.raises(JobCancelled):
        handle.result()


def test_an_unknown_job_is_no_timeout(app: Tenure) -> None:
    handle = app.enqueue("a")

    with pytest.raises(JobUnknown, match=f"there is no job {handle.job_id + 1}"):
        app.result(handle.job_id + 1, timeout=PATIENCE)


@pytest.mark.parametrize("timeout", [0, 0.02, timedelta(milliseconds=20)])
def test_a_job_that_does_not_end_in_time_can_be_asked_again(app: Tenure, timeout: Any) -> None:
    @app.task
    def quick(job: Job) -> str:
        return "done"

    handle = app.enqueue(quick)
    with pytest.raises(TimeoutError, match=r"has not ended within .* s: it is queued") as caught:
        handle.result(timeout=timeout)
    assert isinstance(caught.value, NotEnded)
    assert isinstance(caught.value, TenureError)
    app.worker().run_until_idle()

    assert handle.result() == "done"


@pytest.mark.parametrize("timeout", [-1, float("nan"), "1", True, timedelta(seconds=-1)])
def test_a_timeout_that_is_none_is_refused(sqlite_app: Tenure, timeout: Any) -> None:
    handle = sqlite_app.enqueue("a")
    with pytest.raises(InvalidArgument, match="timeout is"):
        handle.result(timeout=timeout)


def test_another_process_ends_the_job(app: Tenure, pool: ThreadPoolExecutor) -> None:
    handle = app.enqueue("work")
    result = pool.submit(handle.result, SOON)
    waits_for(app, handle)

    child = os.fork()
    if child == 0:
        try:
            app.tasks.add(Task(kind="work", handler=lambda job: "from the child"))
            app.worker().run_until_idle()
        finally:
            os._exit(0)
    os.waitpid(child, 0)

    assert result.result() == "from the child"


def test_nobody_is_left_waiting_when_the_app_is_closed(
    app: Tenure, pool: ThreadPoolExecutor
) -> None:
    handle = app.enqueue("a")
    result = pool.submit(handle.result)
    waits_for(app, handle)

    app.close()

    with pytest.raises(ServerUnavailable, match="was closed"):
        result.result()
    with pytest.raises(NotEnded):  # and it can be used again
        handle.result(timeout=0.05)


SHOWN = """
  from pg_locks
 where locktype = 'advisory'
   and mode = 'ShareLock'
   and database = (select oid from pg_database where datname = current_database())
"""


def test_once_nobody_waits_nobody_is_told(postgres_app: Tenure, dsn: str) -> None:
    handle = postgres_app.enqueue("a")
    with pytest.raises(NotEnded):
        handle.result(timeout=0.05)

    with psycopg.connect(dsn, autocommit=True) as connection:
        eventually(
            lambda: connection.execute(f"select count(*) {SHOWN}").fetchone() == (0,),
            "the keys were dropped",
        )


def test_a_lost_listener_begins_the_protocol_anew(
    postgres_app: Tenure, dsn: str, pool: ThreadPoolExecutor
) -> None:
    handle = postgres_app.enqueue("a")
    result = pool.submit(handle.result, SOON)
    with psycopg.connect(dsn, autocommit=True) as connection:
        eventually(
            lambda: connection.execute(f"select count(*) {SHOWN}").fetchone() == (2,),
            "the keys are shown",
        )
        connection.execute(f"select pg_terminate_backend(pid, 5000) {SHOWN}")
    with postgres_app.producer.planes.lent() as plane:
        [lease] = plane.claim(["default"], "ada")
        plane.complete(lease.job_id, "ada", lease.token, "done")

    assert result.result() == "done"


def test_a_result_is_waited_for_over_an_outage(
    app: Tenure, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.waits.WITHOUT_SERVER", 0.01)
    waits = app.producer.results._waits
    read, tries = waits._read, []

    def broken(job_ids: Any) -> Any:
        tries.append(job_ids)
        if len(tries) <= 3:
            raise ServerUnavailable("away")
        return read(job_ids)

    monkeypatch.setattr(waits, "_read", broken)
    handle = app.enqueue("a")
    result = pool.submit(handle.result, SOON)
    eventually(lambda: len(tries) > 3, "it was tried again")

    app.cancel(handle.job_id)

    with pytest.raises(JobCancelled):
        result.result()


def test_an_error_that_stays_is_told_to_whoever_waits(
    app: Tenure, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(job_ids: Any) -> Any:
        raise PermissionError("no")

    monkeypatch.setattr(app.producer.results._waits, "_read", refused)
    handle = app.enqueue("a")

    with pytest.raises(PermissionError):
        handle.result(SOON)


def test_a_role_that_may_enqueue_may_wait(postgres_app: Tenure, dsn: str) -> None:
    role = databases.new_name("waiter")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"create role {role} login".encode())
        try:
            connection.execute("select tenure.grant_role(%s, 'produce')", [role])
            with Tenure(make_conninfo(dsn, user=role)) as app:
                handle = app.enqueue("a")
                with pytest.raises(NotEnded):
                    handle.result(timeout=0.1)
                postgres_app.cancel(handle.job_id)
                with pytest.raises(JobCancelled):
                    handle.result(SOON)
        finally:
            connection.execute(f"drop owned by {role}; drop role {role}".encode())
