"""What a runner needs of a PostgreSQL store."""

from __future__ import annotations

import contextlib
import select
from collections.abc import Callable, Sequence
from datetime import timedelta

from tenure.bounded import BoundedConnection
from tenure.errors import InvalidArgument
from tenure.limits import MAX_NEW_JOBS, check_length
from tenure.listener import Listener
from tenure.pipelined import enqueue_in_parts, is_worth_it
from tenure.postgres_call import Connection
from tenure.postgres_producer import enqueue_and_wake_call
from tenure.postgres_records import PostgresRecords
from tenure.postgres_signals import PostgresSignals
from tenure.postgres_store import OwnedPostgresControlPlane, PostgresStore
from tenure.records import JobRecord
from tenure.sleeper_postgres import PostgresSleeper
from tenure.values import Enqueued, JobResult, Json, NewJob
from tenure.watch_postgres import PostgresWatch


class PostgresPlane(OwnedPostgresControlPlane):
    """A control plane on a connection of its own, with the housekeeping over the same one."""

    def __init__(self, connection: Connection, *, schema: str) -> None:
        super().__init__(connection, schema=schema)
        self.schema = schema
        self._signals = PostgresSignals(connection, schema=schema)
        self._poll: select.poll | None = None

    def enqueue_many(self, jobs: Sequence[NewJob], *, notify: bool = True) -> list[Enqueued]:
        check_length(jobs, "jobs", MAX_NEW_JOBS)
        if is_worth_it(jobs):
            # What is refused is refused again in one statement, which says which job it is.
            with contextlib.suppress(InvalidArgument):
                return enqueue_in_parts(self._functions, jobs, notify=notify)
        return super().enqueue_many(jobs, notify=notify)

    def wake(self, queues: Sequence[str]) -> None:
        self._signals.wake(queues)

    def enqueue_and_wake(self, job: NewJob) -> tuple[Enqueued, bool]:
        return self._functions.answer(enqueue_and_wake_call(job, self._functions.prefix))

    def worker_seen(self, worker_id: str, queues: Sequence[str], info: Json) -> None:
        self._signals.worker_seen(worker_id, queues, info)

    def maintain(self) -> list[str]:
        return self._signals.maintain()

    def job(self, job_id: int) -> JobRecord | None:
        return PostgresRecords(self.connection, schema=self.schema).job(job_id)

    def results(self, job_ids: Sequence[int]) -> list[JobResult]:
        return PostgresRecords(self.connection, schema=self.schema).results(job_ids)

    def answer_within(self, limit: timedelta) -> None:
        if isinstance(self.connection, BoundedConnection):
            self.connection.answer_within = limit.total_seconds()

    @property
    def stale(self) -> bool:
        # A server says nothing to an idle client that does not listen, unless it hangs up.
        if self.connection.closed:
            return True
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(self.connection.fileno(), select.POLLIN)
        return bool(self._poll.poll(0))


class PostgresBacking:
    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    def open(self) -> PostgresPlane:
        return PostgresPlane(self._store.connect(), schema=self._store.schema)

    def check(self) -> None:
        self._store.check()

    def sleeper(
        self,
        queues: Sequence[str],
        *,
        poll_floor: timedelta,
        on_cancel: Callable[[int], None],
    ) -> PostgresSleeper:
        return PostgresSleeper(self._listen, queues, poll_floor=poll_floor, on_cancel=on_cancel)

    def watch(self, told: Callable[[int], None], changed: Callable[[], None]) -> PostgresWatch:
        return PostgresWatch(self._listen, told=told, changed=changed)

    def _listen(self, heard: Callable[[str], None], changed: Callable[[], None]) -> Listener:
        store = self._store
        return Listener(store.connect, schema=store.schema, heard=heard, changed=changed)
