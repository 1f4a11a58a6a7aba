"""An idle runner starts a job long before it would poll."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import quantiles
from typing import Any

import pytest

from tenure import Job, Tenure, WorkerRunner
from tenure.backing_postgres import PostgresBacking, PostgresPlane
from tenure.limits import POLL_FLOOR
from tenure.postgres_store import PostgresStore
from tenure.values import JobLease
from tests.postgres.races import (
    LONGEST_WAIT,
    Connection,
    connected,
    enqueued,
    one,
    wait_until,
)


class CountingBacking(PostgresBacking):
    """Counts the claims that a runner makes."""

    def __init__(self, store: PostgresStore) -> None:
        super().__init__(store)
        self.claims = 0

    def open(self) -> PostgresPlane:
        backing = self

        class CountingPlane(PostgresPlane):
            def claim(self, *args: Any, **named: Any) -> list[JobLease]:
                backing.claims += 1
                return super().claim(*args, **named)

        return CountingPlane(self._store.connect(), schema=self._store.schema)


class Idle:
    """A runner with the poll floor of the contract, and what its handler saw."""

    def __init__(self, dsn: str, watcher: Connection) -> None:
        self.app = Tenure(dsn)
        assert isinstance(self.app.store, PostgresStore)
        self.backing = CountingBacking(self.app.store)
        self.watcher = watcher
        self.started: dict[int, float] = {}
        self._came = threading.Condition()
        self.runner = WorkerRunner(
            self.backing, {"work": self._work}, queues=["q"], slots=4, poll_floor=POLL_FLOOR
        )

    def _work(self, job: Job) -> None:
        with self._came:
            self.started[job.job_id] = time.monotonic()
            self._came.notify_all()

    def start_of(self, job_id: int) -> float:
        """When the job was started, waiting for that; less than the poll floor."""
        with self._came:
            assert self._came.wait_for(lambda: job_id in self.started, LONGEST_WAIT)
            return self.started[job_id]

    def asleep(self) -> None:
        """Wait until it sleeps: the last thing before that is to ask when a job is due."""
        wait_until(
            "the runner sleeps",
            lambda: (
                self.runner.running == 0
                and self.watcher.execute(
                    """
                    select count(*) from pg_stat_activity
                     where datname = current_database()
                       and state = 'idle'
                       and query like '%%next_due%%'
                       and pid <> pg_backend_pid()
                    """
                ).fetchone()
                == (1,)
            ),
        )


@contextmanager
def running(idle: Idle) -> Iterator[None]:
    idle.runner.start()
    try:
        yield
    finally:
        idle.runner.stop()
        idle.app.close()


@pytest.fixture
def sessions(fresh_dsn: str) -> Iterator[Callable[[], Connection]]:
    opened: list[Any] = []

    def new() -> Connection:
        opened.append(connected(fresh_dsn))
        connection: Connection = opened[-1].__enter__()
        return connection

    yield new
    for manager in opened:
        manager.__exit__(None, None, None)


@pytest.fixture
def idle(fresh_dsn: str, sessions: Callable[[], Connection]) -> Idle:
    return Idle(fresh_dsn, sessions())


def test_a_job_starts_before_any_poll(
    idle: Idle, sessions: Callable[[], Connection], record_property: Callable[[str, object], None]
) -> None:
    producer, delays = sessions(), []
    with running(idle):
        for _ in range(40):
            idle.asleep()
            before = idle.backing.claims
            # No claim was made between the one that found nothing and the notification.
            job_id = enqueued(producer)
            committed = time.monotonic()
            delays.append(idle.start_of(job_id) - committed)
            idle.asleep()
            assert idle.backing.claims - before <= 3

    p50 = quantiles(delays, n=100)[49] * 1000
    record_property("pick-up p50 in ms", p50)
    print(f"an idle runner starts a job {p50:.1f} ms after its commit (p50)")
    assert max(delays) < LONGEST_WAIT < POLL_FLOOR.total_seconds()


def test_an_idle_runner_asks_for_nothing(idle: Idle) -> None:
    with running(idle):
        idle.asleep()
        # What rang before it slept, such as that its listener is up, costs one claim.
        assert is_silent(idle) or is_silent(idle)


def is_silent(idle: Idle) -> bool:
    """Whether it claims nothing for a while; its next reason to is the poll floor."""
    before, end = idle.backing.claims, time.monotonic() + 1.5
    while time.monotonic() < end:
        if idle.backing.claims != before:
            return False
        time.sleep(0.05)
    return True


def test_a_job_whose_transaction_was_open_when_the_runner_looked_starts_after_its_commit(
    idle: Idle, sessions: Callable[[], Connection]
) -> None:
    producer = sessions()
    producer.execute("begin")
    job_id = enqueued(producer)
    with running(idle):
        wait_until("the runner looked for jobs", lambda: idle.backing.claims > 3)
        producer.execute("commit")

        idle.start_of(job_id)


def test_a_job_that_somebody_held_when_the_runner_looked_starts_when_he_lets_go(
    idle: Idle, sessions: Callable[[], Connection]
) -> None:
    other = sessions()
    with running(idle):
        idle.asleep()
        other.execute("begin")
        job_id = enqueued(other, notify=False)
        other.execute("commit; begin")
        assert one(other, "claim_job", job_id, "bob") is not None
        before = idle.backing.claims
        one(sessions(), "wake", ["q"])
        wait_until("the runner looked for the job", lambda: idle.backing.claims > before)
        other.execute("rollback")

        idle.start_of(job_id)


def test_a_job_in_a_lane_that_the_runner_never_met_starts_at_once(
    idle: Idle, sessions: Callable[[], Connection]
) -> None:
    producer = sessions()
    with running(idle):
        for priority in (5, 0, 9):
            idle.asleep()
            idle.start_of(enqueued(producer, priority=priority))
