"""tenure as an asyncio application uses it: enqueueing, waiting, looking."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ParamSpec, Self, TypedDict, TypeVar, Unpack

import psycopg

from tenure.app import Tenure
from tenure.forks import begin_anew_after_fork
from tenure.joining_async import answer, joinable
from tenure.postgres_producer import enqueue_call, enqueue_many_call
from tenure.records import JobRecord
from tenure.results import AsyncHandle, Timeout, handles
from tenure.values import JobAnswer, Json, NewJob

THREADS = 4
"""In which calls run, each over a connection of its own."""

P = ParamSpec("P")
T = TypeVar("T")


class JobSettings(TypedDict, total=False):
    """What `enqueue` takes besides the task and the payload; as for `Tenure.enqueue`."""

    queue: str | None
    priority: int | None
    run_at: datetime | None
    delay: timedelta | None
    max_attempts: int | None
    dedup_key: str | None
    timeout: timedelta | None
    retry_base: timedelta | None
    retry_cap: timedelta | None
    meta: Json


class AsyncTenure:
    """The same app for coroutines: what would block is awaited.

        jobs = AsyncTenure(app)  # or AsyncTenure("postgresql://localhost/shop")

        async def order(session: AsyncSession) -> int:
            handle = await jobs.enqueue("send_receipt", {"order": 7}, connection=session)
            await session.commit()
            return await handle.result(timeout=10)

    It is a face of a `Tenure`, with its tasks, connections and rules: calls run in a few threads,
    except those inside a caller's transaction, which are awaited on the caller's connection.
    Any number of coroutines wait for results without a thread each. Event loops: any, one after
    the other. An await that is cancelled may have enqueued its job all the same.
    """

    def __init__(self, app: Tenure | str | os.PathLike[str], **options: Any) -> None:
        """`app`: the app that has the tasks; or a target and options, as for `Tenure`."""
        self.app = app if isinstance(app, Tenure) else Tenure(app, **options)
        self._handle = handles(AsyncHandle, self.result)
        self.after_fork()
        begin_anew_after_fork(self)

    def after_fork(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="tenure-async")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def enqueue(
        self,
        task: str | Callable[..., Any],
        payload: Json = None,
        *,
        connection: Any = None,
        **settings: Unpack[JobSettings],
    ) -> AsyncHandle:
        """Add a job for a task, given as the function or by its kind; as `Tenure.enqueue`.

        `connection`: a psycopg.AsyncConnection, SQLAlchemy's AsyncConnection or AsyncSession over
        one, or a sqlite3.Connection. The job belongs to its transaction, which is never
        committed here.
        """
        job = self.app.new_job(task, payload, **settings)
        if connection is None:
            return self._handle(await self._in_thread(self.app.producer.enqueue, job))
        raw = await joinable(connection, kind=self.app.store.kind)
        if isinstance(raw, psycopg.AsyncConnection):
            call = enqueue_call(job, notify=True)
            return self._handle(await answer(raw, self.app.schema, call))
        return self._handle(self.app.producer.enqueue(job, connection=raw))

    async def enqueue_many(
        self, jobs: Sequence[NewJob], *, connection: Any = None
    ) -> list[AsyncHandle]:
        """Add 1 to 10,000 jobs, all or none; the answers come in the order of `jobs`."""
        producer = self.app.producer
        if connection is None:
            added = await self._in_thread(producer.enqueue_many, jobs)
        else:
            raw = await joinable(connection, kind=self.app.store.kind)
            if isinstance(raw, psycopg.AsyncConnection):
                call = enqueue_many_call(jobs, notify=True)
                added = await answer(raw, self.app.schema, call)
            else:
                added = producer.enqueue_many(jobs, connection=raw)
        return list(map(self._handle, added))

    def new_job(self, task: str | Callable[..., Any], payload: Json = None, **given: Any) -> NewJob:
        """A job for `enqueue_many`, with the task's settings where `given` has none."""
        return self.app.new_job(task, payload, **given)

    async def result(self, job_id: int, timeout: Timeout = None) -> Json:
        """What a job's handler returned, once the job has completed; as `Tenure.result`."""
        results = self.app.producer.results
        return await results.wait(
            job_id, timeout, lambda job_id: self._in_thread(results.read, job_id)
        )

    async def cancel(self, job_id: int) -> JobAnswer:
        """Cancel a queued job now, a running one by request. Raises `JobUnknown`."""
        return await self._in_thread(self.app.cancel, job_id)

    async def retry(self, job_id: int, attempts: int = 1) -> JobAnswer:
        """Queue a failed or cancelled job again, with `attempts` more. Raises `JobUnknown`."""
        return await self._in_thread(self.app.retry, job_id, attempts)

    async def job(self, job_id: int) -> JobRecord | None:
        """The job as it is just now, live or finished; None for an unknown id."""
        return await self._in_thread(self.app.job, job_id)

    async def close(self) -> None:
        """Close the app: send the wakes that are due, and close what is open.

        Whoever waits for a result meanwhile gets `ServerUnavailable`. Can be used again.
        """
        await self._in_thread(self.app.close)
        threads = self._threads
        self.after_fork()
        threads.shutdown(wait=False)

    async def _in_thread(
        self, call: Callable[P, T], /, *arguments: P.args, **options: P.kwargs
    ) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(call, *arguments, **options))
