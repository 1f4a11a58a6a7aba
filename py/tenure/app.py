"""tenure as an application uses it: tasks, enqueueing, a worker."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, Self, TypeVar, overload

from tenure.backing import backing_of
from tenure.control_plane import ControlPlane
from tenure.joining import joined_plane
from tenure.limits import MAX_QUEUES, POLL_FLOOR
from tenure.planes import Planes
from tenure.postgres_store import PostgresStore
from tenure.records import JobRecord
from tenure.runner import WorkerRunner
from tenure.sqlite_store import SqliteStore
from tenure.store import open_store
from tenure.tasks import Task, Tasks
from tenure.values import Enqueued, JobAnswer, Json, NewJob
from tenure.waker import Waker
from tenure.worker import Handler

H = TypeVar("H", bound=Handler)


class Tenure:
    """One store of jobs, with the functions that handle them.

        app = Tenure("postgresql://localhost/shop")

        @app.task
        def send_receipt(job: Job) -> None:
            mail(job.payload["order"])

        app.enqueue(send_receipt, {"order": 7})
        app.worker().run_forever()

    Making one touches no database. Threads: any; a forked child opens connections of its own.
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        *,
        schema: str = "tenure",
        prepare_threshold: int | None = 5,
    ) -> None:
        """`target`: a PostgreSQL DSN, or an SQLite path; see `open_store`.

        `schema` and `prepare_threshold` are for PostgreSQL; pass None as the latter behind a
        pooler that pools transactions. Raises `InvalidArgument` for a malformed target.
        """
        self.schema = schema
        self.store: PostgresStore | SqliteStore = open_store(
            os.fspath(target), schema=schema, prepare_threshold=prepare_threshold
        )
        self.tasks = Tasks()
        self._planes = Planes(backing_of(self.store).open)
        self._waker = Waker(_waking(self._planes))
        # What was noted just before the process ends is still sent.
        weakref.finalize(self, _close, self._waker, self._planes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @overload
    def task(self, handler: H, /) -> H: ...
    @overload
    def task(
        self,
        handler: None = None,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        priority: int = 5,
        max_attempts: int = 5,
        timeout: timedelta | None = None,
        retry_base: timedelta | None = None,
        retry_cap: timedelta | None = None,
    ) -> Callable[[H], H]: ...
    def task(
        self, handler: H | None = None, /, *, name: str | None = None, **settings: Any
    ) -> H | Callable[[H], H]:
        """Make a function the handler of a kind; it stays the plain function that it was.

        It takes a `Job`, and what it returns is the job's result and must be JSON. See `Worker`
        for what its exceptions mean. The kind is `name`, or the function's name. The settings
        are those of its jobs unless `enqueue` says otherwise; `timeout` counts from the claim.
        Raises `InvalidArgument` for settings that no job may have, or a kind that is taken.
        """

        def register(function: H) -> H:
            self.tasks.add(Task(kind=name or function.__name__, handler=function, **settings))
            return function

        return register if handler is None else register(handler)

    def enqueue(
        self,
        task: str | Callable[..., Any],
        payload: Json = None,
        *,
        queue: str | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: timedelta | None = None,
        max_attempts: int | None = None,
        dedup_key: str | None = None,
        timeout: timedelta | None = None,
        retry_base: timedelta | None = None,
        retry_cap: timedelta | None = None,
        meta: Json = None,
        connection: Any = None,
    ) -> Enqueued:
        """Add a job for a task, given as the function or by its kind.

        None stands for the task's own setting. Without `connection` the job is committed when
        this returns. With one (psycopg, sqlite3, or SQLAlchemy's Connection or Session) it
        belongs to that connection's transaction, which is never committed here: the job exists
        if and only if the rest of that transaction does. Raises `InvalidArgument`, nothing
        written, also for a connection that commits by itself; `ServerUnavailable`.
        """
        job = self.new_job(
            task,
            payload,
            queue=queue,
            priority=priority,
            run_at=run_at,
            delay=delay,
            max_attempts=max_attempts,
            dedup_key=dedup_key,
            timeout=timeout,
            retry_base=retry_base,
            retry_cap=retry_cap,
            meta=meta,
        )
        [added] = self._add([job], lambda plane, notify: [_one(plane, job, notify)], connection)
        return added

    def new_job(self, task: str | Callable[..., Any], payload: Json = None, **given: Any) -> NewJob:
        """A job for `enqueue_many`, with the task's settings where `given` has none."""
        return self.tasks.find(task).new_job(payload, **given)

    def enqueue_many(self, jobs: Sequence[NewJob], *, connection: Any = None) -> list[Enqueued]:
        """Add 1 to 10,000 jobs, all or none; the answers come in the order of `jobs`.

        As `enqueue` otherwise.
        """
        return self._add(
            jobs, lambda plane, notify: plane.enqueue_many(jobs, notify=notify), connection
        )

    def cancel(self, job_id: int) -> JobAnswer:
        """Cancel a queued job now, a running one by request. Raises `JobUnknown`."""
        with self._planes.lent() as plane:
            return plane.cancel(job_id)

    def retry(self, job_id: int, attempts: int = 1) -> JobAnswer:
        """Queue a failed or cancelled job again, with `attempts` more. Raises `JobUnknown`."""
        with self._planes.lent() as plane:
            return plane.retry(job_id, attempts)

    def job(self, job_id: int) -> JobRecord | None:
        """The job as it is just now, live or finished; None for an unknown id."""
        with self._planes.lent() as plane:
            return plane.job(job_id)

    def worker(self, **options: Any) -> WorkerRunner:
        """A runner for this app's tasks; the options are those of `WorkerRunner`.

        It serves the tasks' queues unless `queues` says otherwise.
        """
        options.setdefault("queues", self.tasks.queues or ["default"])
        return WorkerRunner(self.store, self.tasks, **options)

    def install(self) -> str:
        """Make the schema or the file, or bring it up to date; its version now."""
        return self.store.install()

    def close(self) -> None:
        """Send the wakes that are due, and close what is open. The app can be used again."""
        _close(self._waker, self._planes)
        self.store.close()

    def _add(
        self,
        jobs: Sequence[NewJob],
        add: Callable[[ControlPlane, bool], list[Enqueued]],
        connection: Any,
    ) -> list[Enqueued]:
        if connection is not None:
            return add(joined_plane(connection, kind=self.store.kind, schema=self.schema), True)
        with self._planes.lent() as plane:
            added = add(plane, False)
        woken = [
            job.queue
            for job, answer in zip(jobs, added, strict=True)
            if answer.created and (job.delay is None or job.delay <= POLL_FLOOR)
        ]
        if woken:
            self._waker.note(woken)
        return added


def _one(plane: ControlPlane, job: NewJob, notify: bool) -> Enqueued:
    settings = {field.name: getattr(job, field.name) for field in fields(job)}
    return plane.enqueue(**settings, notify=notify)


def _waking(planes: Planes) -> Callable[[list[str]], None]:
    def wake(queues: list[str]) -> None:
        with planes.lent() as plane:
            for first in range(0, len(queues), MAX_QUEUES):
                plane.wake(queues[first : first + MAX_QUEUES])

    return wake


def _close(waker: Waker, planes: Planes) -> None:
    waker.close()
    planes.close()
