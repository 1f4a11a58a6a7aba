"""`async def` handlers: on one loop, cancelled when there is reason, apart from the rest."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from tenure import Job, JobStatus, Tenure, Verdict, Worker
from tests.runner.conftest import Start
from tests.runner.fakes import Script, lease
from tests.runner.waiting import PATIENCE, comes, ends, eventually, status_of

LEASE = timedelta(seconds=0.6)


async def for_ever() -> None:
    await asyncio.Event().wait()


def test_as_many_run_together_on_one_thread_as_there_are_slots(app: Tenure, start: Start) -> None:
    inside = 0
    most = 0
    threads: set[str] = set()
    together = asyncio.Event()

    @app.task
    async def meets(job: Job) -> str:
        nonlocal inside, most
        threads.add(threading.current_thread().name)
        inside += 1
        most = max(most, inside)
        if inside == 3:
            together.set()
        await together.wait()
        inside -= 1
        return "met"

    handles = [app.enqueue(meets) for _ in range(6)]
    start(slots=3)

    assert [handle.result(PATIENCE) for handle in handles] == ["met"] * 6
    assert most == 3
    assert threads == {"tenure-event-loop"}


def test_async_handlers_and_plain_ones_share_the_slots_of_a_group(
    sqlite_app: Tenure, start: Start
) -> None:
    app = sqlite_app
    let_go = threading.Event()

    @app.task
    async def on_the_loop(job: Job) -> None:
        while not let_go.is_set():
            await asyncio.sleep(0.01)

    @app.task
    def in_a_thread(job: Job) -> None:
        assert let_go.wait(PATIENCE)

    jobs = [app.new_job(task) for task in (on_the_loop, in_a_thread) for _ in range(2)]
    handles = app.enqueue_many(jobs)
    runner = start(app, slots=3)

    eventually(lambda: runner.slots[0].busy == 3, "every slot was busy")
    assert runner.slots[0].idle == 0
    let_go.set()

    for handle in handles:
        ends(app, handle.job_id, JobStatus.COMPLETED)


def test_a_handler_that_blocks_its_loop_keeps_its_job_and_holds_up_no_thread(
    app: Tenure, start: Start
) -> None:
    """O06: the heartbeat does not run on the loop."""
    attempts: list[int] = []

    @app.task
    async def blocks(job: Job) -> int:
        attempts.append(job.attempt)
        time.sleep(4 * LEASE.total_seconds())
        return job.attempt

    @app.task
    def plain(job: Job) -> bool:
        return status_of(app, blocking.job_id) is JobStatus.RUNNING

    blocking = app.enqueue(blocks)
    start(slots=2, lease_for=LEASE)
    start(queues=["another"], sweep_every=timedelta(milliseconds=100))
    eventually(lambda: attempts, "the loop was blocked")

    assert app.enqueue(plain).result(PATIENCE) is True
    assert blocking.result(PATIENCE) == 1
    assert attempts == [1]


def test_progress_and_seal_have_variants_that_let_the_loop_go_on(
    sqlite_app: Tenure, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = sqlite_app
    other_ran = threading.Event()
    plainly = Job.progress

    def after_the_other(job: Job, value: Any) -> bool:
        comes(other_ran, "the loop went on while progress was written")
        return plainly(job, value)

    monkeypatch.setattr(Job, "progress", after_the_other)

    @app.task
    async def reports(job: Job) -> None:
        assert await job.aprogress({"half": 1})
        await job.aseal("sealed")

    @app.task
    async def other(job: Job) -> None:
        other_ran.set()

    reporting = app.enqueue(reports)
    app.enqueue(other)
    start(app, slots=2)

    assert reporting.result(PATIENCE) == "sealed"
    record = app.job(reporting.job_id)
    assert record is not None
    assert record.progress == {"half": 1}


def test_a_cancellation_cancels_the_handlers_task(app: Tenure, start: Start) -> None:
    started = threading.Event()
    seen: list[type[BaseException]] = []

    @app.task
    async def waits(job: Job) -> None:
        started.set()
        try:
            await for_ever()
        except asyncio.CancelledError as error:
            seen.append(type(error))
            raise

    start(lease_for=LEASE)
    job_id = app.enqueue(waits).job_id
    comes(started, "the handler started")

    assert app.cancel(job_id).verdict is Verdict.OK

    ends(app, job_id, JobStatus.CANCELLED)
    assert seen == [asyncio.CancelledError]


def test_a_handler_that_catches_its_cancellation_may_finish_and_is_cancelled_once(
    sqlite_app: Tenure, start: Start
) -> None:
    """What it returns comes after an accepted cancellation, so the job ends cancelled."""
    app = sqlite_app
    started, cleaned = threading.Event(), threading.Event()

    @app.task
    async def cleans_up(job: Job) -> str:
        started.set()
        try:
            await for_ever()
        except asyncio.CancelledError:
            await asyncio.sleep(2 * LEASE.total_seconds() / 3)
            cleaned.set()
        return "cleaned"

    start(app, lease_for=LEASE)
    job_id = app.enqueue(cleans_up).job_id
    comes(started, "the handler started")
    app.cancel(job_id)

    ends(app, job_id, JobStatus.CANCELLED)
    assert cleaned.is_set()


def test_a_lost_lease_cancels_the_handlers_task_and_nothing_is_written(
    app: Tenure, start: Start
) -> None:
    started, seen = threading.Event(), threading.Event()

    @app.task
    async def waits(job: Job) -> None:
        started.set()
        try:
            await for_ever()
        finally:
            seen.set()

    runner = start(lease_for=LEASE)
    job_id = app.enqueue(waits, max_attempts=1).job_id
    comes(started, "the handler started")
    with closing(app.store.control_plane()) as plane:
        [held] = plane.held(runner.worker_id)
        plane.release(job_id, runner.worker_id, held.token, started=True)

    comes(seen, "the handler was cancelled")
    eventually(lambda: runner.running == 0, "the handler ended")

    record = app.job(job_id)
    assert record is not None
    assert record.last_error == "given back on the last attempt"


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        asyncio.CancelledError(),
        MemoryError(),
        LookupError("not there"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_handler_raises_ends_its_own_job_and_no_more(
    sqlite_app: Tenure, start: Start, error: BaseException
) -> None:
    """O35."""
    app = sqlite_app

    @app.task(max_attempts=1)
    async def raises(job: Job) -> None:
        await asyncio.sleep(0)
        raise error

    @app.task
    async def works(job: Job) -> str:
        return "fine"

    runner = start(app, slots=1)
    raising, working = app.enqueue(raises).job_id, app.enqueue(works)

    assert working.result(PATIENCE) == "fine"
    ends(app, raising, JobStatus.FAILED)
    [attempt] = app.store.records().attempts(raising)
    assert attempt.error_type == type(error).__name__
    eventually(lambda: runner.running == 0, "no lease was kept")


def test_a_stop_lets_an_async_handler_end(app: Tenure, start: Start) -> None:
    started, let_go = threading.Event(), threading.Event()

    @app.task
    async def slow(job: Job) -> str:
        started.set()
        while not let_go.is_set():
            await asyncio.sleep(0.01)
        return "ended"

    runner = start()
    job_id = app.enqueue(slow).job_id
    comes(started, "the handler started")
    stopping = threading.Thread(target=runner.stop)
    stopping.start()
    eventually(lambda: runner.stopping, "the stop began")
    let_go.set()
    stopping.join(PATIENCE)

    assert status_of(app, job_id) is JobStatus.COMPLETED


def test_an_async_handler_beyond_the_grace_is_cancelled_and_its_job_handed_back(
    app: Tenure, start: Start
) -> None:
    started, seen = threading.Event(), threading.Event()

    @app.task
    async def endless(job: Job) -> None:
        started.set()
        try:
            await for_ever()
        finally:
            seen.set()

    runner = start()
    job_id = app.enqueue(endless).job_id
    comes(started, "the handler started")

    runner.stop(timedelta(0))

    assert seen.is_set()
    record = app.job(job_id)
    assert record is not None
    assert (record.status, record.attempt) == ("queued", 1)
    assert "tenure-event-loop" not in {
        thread.name for thread in threading.enumerate() if thread is not threading.main_thread()
    }


def test_a_worker_by_itself_runs_an_async_handler_too() -> None:
    async def work(job: Job) -> str:
        await asyncio.sleep(0)
        return "done"

    plane = Script(Verdict.OK)

    Worker(plane, {"work": work}).run(lease())

    assert plane.calls == [("complete", {"result": "done"})]


def test_an_object_whose_call_is_async_is_awaited() -> None:
    class Work:
        async def __call__(self, job: Job) -> str:
            return "done"

    plane = Script(Verdict.OK)

    Worker(plane, {"work": Work()}).run(lease())

    assert plane.calls == [("complete", {"result": "done"})]
