"""tenure as an application uses it: tasks, enqueueing, a worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, Self, TypeVar, overload

from tenure.draining import Drained, drain
from tenure.hooks import Hooks
from tenure.postgres_store import PostgresStore
from tenure.producer import Producer
from tenure.records import MAX_RECORDS, JobRecord
from tenure.results import Handle, Timeout, handles
from tenure.runner import WorkerRunner
from tenure.sqlite_store import SqliteStore
from tenure.store import open_store
from tenure.tasks import Errors, Task, Tasks
from tenure.values import JobAnswer, JobStatus, Json, NewJob
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
        hooks: Hooks | None = None,
    ) -> None:
        """`target`: a PostgreSQL DSN, or an SQLite path; see `open_store`.

        `schema` and `prepare_threshold` are for PostgreSQL; pass None as the latter behind a
        pooler that pools transactions. `hooks` are those of the app's workers, unless they are
        given others. Raises `InvalidArgument` for a malformed target.
        """
        self.schema = schema
        self.store: PostgresStore | SqliteStore = open_store(
            os.fspath(target), schema=schema, prepare_threshold=prepare_threshold
        )
        self.tasks = Tasks()
        self.hooks = hooks
        self.producer = Producer(self.store, schema=schema)
        """The connections that the methods below use."""
        self._handle = handles(Handle, self.result)

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
        retry_on: Errors | None = None,
        no_retry_on: Errors = (),
        slots: Literal["process"] | None = None,
    ) -> Callable[[H], H]: ...
    def task(
        self, handler: H | None = None, /, *, name: str | None = None, **settings: Any
    ) -> H | Callable[[H], H]:
        """Make a function the handler of a kind; it stays the plain function that it was.

        It takes a `Job`, and what it returns is the job's result and must be JSON. See `Worker`
        for what its exceptions mean. The kind is `name`, or the function's name. The settings
        are those of its jobs unless `enqueue` says otherwise; `timeout` counts from the claim.
        Exceptions of `no_retry_on`, and all but those of `retry_on` where that is given, fail the
        job for good; each is a class or a tuple of classes. With `slots="process"` it runs in a
        child process, which must find it by its module and name. An `async def` runs on an event
        loop.
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
    ) -> Handle:
        """Add a job for a task, given as the function or by its kind.

        None stands for the task's own setting. Without `connection` the job is committed when
        this returns. With one (psycopg, sqlite3, or SQLAlchemy's Connection or Session) it
        belongs to that connection's transaction, which is never committed here: the job exists
        if and only if the rest of that transaction does. Raises `InvalidArgument`, nothing
        written, also for a connection that commits by itself; `ServerUnavailable`.

        What comes back has the job's id, says whether this call made it, and waits for the
        result: `app.enqueue(add, [2, 3]).result(timeout=10)`.
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
        return self._handle(self.producer.enqueue(job, connection=connection))

    def new_job(self, task: str | Callable[..., Any], payload: Json = None, **given: Any) -> NewJob:
        """A job for `enqueue_many`, with the task's settings where `given` has none."""
        return self.tasks.find(task).new_job(payload, **given)

    def enqueue_many(self, jobs: Sequence[NewJob], *, connection: Any = None) -> list[Handle]:
        """Add 1 to 10,000 jobs, all or none; the answers come in the order of `jobs`.

        As `enqueue` otherwise.
        """
        return list(map(self._handle, self.producer.enqueue_many(jobs, connection=connection)))

    def result(self, job_id: int, timeout: Timeout = None) -> Json:
        """What a job's handler returned, once the job has completed; waits until it has ended.

        `timeout` is in seconds, or a timedelta; None waits for as long as it takes, also while
        the database is away. A job that ended before is read from the history that is kept.
        Raises `JobFailed` with the error that was stored, `JobCancelled`, `NotEnded` (a
        `TimeoutError`) when the time is over, `JobUnknown` for an id that no committed job has.
        A failed attempt with attempts left is not the end.
        """
        return self.producer.results.get(job_id, timeout)

    def cancel(self, job_id: int) -> JobAnswer:
        """Cancel a queued job now, a running one by request. Raises `JobUnknown`."""
        with self.producer.planes.lent() as plane:
            return plane.cancel(job_id)

    def retry(self, job_id: int, attempts: int = 1) -> JobAnswer:
        """Queue a failed or cancelled job again, with `attempts` more. Raises `JobUnknown`."""
        with self.producer.planes.lent() as plane:
            return plane.retry(job_id, attempts)

    def job(self, job_id: int) -> JobRecord | None:
        """The job as it is just now, live or finished; None for an unknown id."""
        with self.producer.planes.lent() as plane:
            return plane.job(job_id)

    def worker(self, **options: Any) -> WorkerRunner:
        """A runner for this app's tasks; the options are those of `WorkerRunner`.

        It serves the tasks' queues unless `queues` says otherwise.
        """
        options.setdefault("queues", self.tasks.queues or ["default"])
        options.setdefault("hooks", self.hooks)
        return WorkerRunner(self.store, self.tasks, **options)

    def enqueued(
        self,
        *,
        kind: str | Callable[..., Any] | None = None,
        queue: str | None = None,
    ) -> list[JobRecord]:
        """The jobs that are queued, due or not, of a task or in a queue; oldest first.

        The latest 10,000 are looked at.
        """
        if kind is not None:
            kind = self.tasks.find(kind).kind
        found = self.store.records().jobs(queue=queue, status=JobStatus.QUEUED, limit=MAX_RECORDS)
        return [job for job in reversed(found) if kind is None or job.kind == kind]

    def drain(
        self, *, queues: Sequence[str] | None = None, limit: int | None = None
    ) -> list[Drained]:
        """Run what is due, here and now, and say what it came to: for tests and scripts.

        Lapsed leases are swept first. Jobs run in the calling thread one after the other, in the
        order in which workers claim them, and so do the jobs that they enqueue, until nothing is
        due or `limit` jobs have run. What is due later stays queued, so a job that is tried again
        after a backoff runs once. The queues are the tasks' unless `queues` says otherwise.

        No heartbeat runs, so a lease is for an hour; and no timeout interrupts a handler. What a
        handler raises is in the outcome, and not raised, but for `KeyboardInterrupt`.
        """
        served = self.tasks.queues or ["default"] if queues is None else queues
        return drain(self.store, self.tasks, queues=served, limit=limit)

    def install(self) -> str:
        """Make the schema or the file, or bring it up to date; its version now."""
        return self.store.install()

    def close(self) -> None:
        """Send the wakes that are due, and close what is open. The app can be used again.

        Whoever waits for a result meanwhile gets `ServerUnavailable`.
        """
        self.producer.close()
        self.store.close()
