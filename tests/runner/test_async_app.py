"""AsyncTenure: the same app for coroutines."""

from __future__ import annotations

import asyncio
import os
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from tenure import (
    AsyncHandle,
    AsyncTenure,
    Enqueued,
    InvalidArgument,
    Job,
    JobCancelled,
    JobFailed,
    JobStatus,
    JobUnknown,
    NotEnded,
    ServerUnavailable,
    Tenure,
    Verdict,
)
from tests.runner.conftest import Start
from tests.runner.waiting import PATIENCE


def test_coroutines_enqueue_wait_and_look(app: Tenure, start: Start) -> None:
    @app.task(queue="sums", priority=2)
    def double(job: Job) -> int:
        return int(job.payload) * 2

    async def main() -> None:
        async with AsyncTenure(app) as jobs:
            handle = await jobs.enqueue(double, 4, dedup_key="k")
            assert isinstance(handle, AsyncHandle)
            assert handle == Enqueued(job_id=handle.job_id, created=True)
            assert not (await jobs.enqueue(double, 4, dedup_key="k")).created
            record = await jobs.job(handle.job_id)
            assert record is not None
            assert (record.queue, record.priority) == ("sums", 2)
            with pytest.raises(NotEnded, match=r"has not ended within 0\.02 s: it is queued"):
                await handle.result(timeout=0.02)

            start()
            assert await handle.result(timeout=PATIENCE) == 8
            assert await jobs.result(handle.job_id, timeout=timedelta(0)) == 8

    asyncio.run(main())


def test_many_coroutines_wait_with_one_thread(app: Tenure, start: Start) -> None:
    @app.task
    def double(job: Job) -> int:
        return int(job.payload) * 2

    async def main() -> None:
        async with AsyncTenure(app) as jobs:
            handles = await jobs.enqueue_many([jobs.new_job("double", n) for n in range(200)])
            waits = [asyncio.ensure_future(h.result(timeout=PATIENCE)) for h in handles]
            waited = app.producer.results._waits._waited
            while len(waited) < len(handles):
                await asyncio.sleep(0.001)
            named = [thread.name for thread in threading.enumerate()]
            assert named.count("tenure-waits") == 1
            assert sum(name.startswith("tenure-async") for name in named) <= 4
            start()
            assert await asyncio.gather(*waits) == [2 * n for n in range(200)]

    asyncio.run(main())


def test_what_is_not_a_result_is_raised(app: Tenure) -> None:
    @app.task(max_attempts=1)
    def broken(job: Job) -> None:
        raise ValueError("it")

    async def main() -> None:
        async with AsyncTenure(app) as jobs:
            failed, cancelled = await jobs.enqueue(broken), await jobs.enqueue("other")
            await asyncio.to_thread(app.worker().run_until_idle)
            assert (await jobs.cancel(cancelled.job_id)).verdict in (Verdict.OK, Verdict.ALREADY)

            with pytest.raises(JobFailed, match="ValueError: it"):
                await failed.result()
            with pytest.raises(JobCancelled):
                await cancelled.result()
            with pytest.raises(JobUnknown):
                await jobs.result(cancelled.job_id + 1)
            with pytest.raises(JobUnknown):
                await jobs.cancel(cancelled.job_id + 1)
            with pytest.raises(InvalidArgument):
                await jobs.enqueue("a", priority=10)
            with pytest.raises(InvalidArgument):
                await jobs.result(failed.job_id, timeout=-1)
            assert (await jobs.retry(failed.job_id)).status is JobStatus.QUEUED

    asyncio.run(main())


def test_a_cancelled_wait_is_forgotten(app: Tenure) -> None:
    async def main() -> None:
        async with AsyncTenure(app) as jobs:
            handle = await jobs.enqueue("a")
            wait = asyncio.ensure_future(handle.result())
            waited = app.producer.results._waits._waited
            while handle.job_id not in waited:
                await asyncio.sleep(0)
            wait.cancel()
            with pytest.raises(asyncio.CancelledError):
                await wait
            assert handle.job_id not in waited

    asyncio.run(main())


def test_closing_ends_the_waits_and_the_app_goes_on(app: Tenure) -> None:
    async def main() -> None:
        jobs = AsyncTenure(app)
        handle = await jobs.enqueue("a")
        wait = asyncio.ensure_future(handle.result())
        while handle.job_id not in app.producer.results._waits._waited:
            await asyncio.sleep(0)
        await jobs.close()
        with pytest.raises(ServerUnavailable, match="was closed"):
            await wait
        assert (await jobs.enqueue("a")).created
        await jobs.close()

    asyncio.run(main())


def test_it_is_made_of_a_target_and_used_in_one_loop_after_another(tmp_path: Path) -> None:
    jobs = AsyncTenure(tmp_path / "jobs.db")

    first = asyncio.run(jobs.enqueue("a"))
    second = asyncio.run(jobs.enqueue("a"))

    assert second.job_id > first.job_id
    asyncio.run(jobs.close())


def test_a_forked_child_has_threads_of_its_own(app: Tenure) -> None:
    jobs = AsyncTenure(app)
    asyncio.run(jobs.enqueue("parent"))
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(jobs.enqueue("child", dedup_key="from the child"))
            asyncio.run(jobs.close())
        finally:
            os._exit(0)
    os.waitpid(child, 0)

    assert not asyncio.run(jobs.enqueue("child", dedup_key="from the child")).created
    asyncio.run(jobs.close())
