"""The sleepers by themselves: what they claim, what they ask, in which order."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tenure import Job, JobStatus, ServerUnavailable, Tenure
from tenure.sleeper import Bell, Found
from tenure.sleeper_postgres import PostgresSleeper
from tests.runner.conftest import Start
from tests.runner.waiting import PATIENCE, comes, ends, eventually

LONG = timedelta(seconds=30)


class Database:
    """Stands for the listener and the claims; notes every step in `steps`."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.settled: list[bool] = []
        """Answers of sleep_settled; True when they are used up."""
        self.due_in: list[timedelta | None] = []
        """Answers of next_due; None when they are used up."""
        self.found: list[Found] = []
        """Answers of claims; nothing when they are used up."""
        self.horizon: int | None = 7
        self.up = True
        self.generation = 1
        self.on_claim: Callable[[int], None] = lambda n: None
        self.claims = 0

    # The listener.

    def start(self) -> None: ...

    def close(self) -> None: ...

    def ask(self, use: Callable[[Any], Any]) -> Any:
        if not self.up:
            raise ServerUnavailable("down")
        return use(self)

    # What it is asked.

    def queue_key(self, queue: str) -> int:
        return {"mine": 1}.get(queue, 2)

    def sleep_begin(self, queues: Sequence[str]) -> int | None:
        self.steps.append("begin")
        return self.horizon

    def sleep_settled(self, horizon: int) -> bool:
        self.steps.append("settled")
        return self.settled.pop(0) if self.settled else True

    def sleep_end(self) -> None:
        self.steps.append("end")

    def next_due(self, queues: Sequence[str]) -> timedelta | None:
        self.steps.append("due")
        return self.due_in.pop(0) if self.due_in else None

    # The claims.

    def claim(self) -> Found:
        self.steps.append("claim")
        self.claims += 1
        self.on_claim(self.claims)
        return self.found.pop(0) if self.found else Found.NOTHING


class Sleeping:
    """A `PostgresSleeper` over such a database, asleep on a thread of its own."""

    def __init__(self, database: Database, pool: ThreadPoolExecutor) -> None:
        self.cancelled: list[int] = []
        self.database = database

        def listen(heard: Callable[[str], None], changed: Callable[[], None]) -> Any:
            self.heard = heard
            return database

        self._pool = pool
        self.sleeper = PostgresSleeper(
            listen, ["mine"], poll_floor=LONG, on_cancel=self.cancelled.append
        )

    def sleep(self, queues: Sequence[str] = ("mine",)) -> Future[None]:
        return self._pool.submit(self.sleeper.sleep, self.database.claim, lambda: queues)


@pytest.fixture
def database() -> Database:
    return Database()


@pytest.fixture
def sleeping(database: Database) -> Iterator[Sleeping]:
    with ThreadPoolExecutor(1) as pool:
        made = Sleeping(database, pool)
        try:
            yield made
        finally:
            database.found = [Found.FULL] * 100
            made.sleeper.wake()


def test_it_sleeps_only_after_a_claim_begun_after_the_horizon_settled(
    database: Database, sleeping: Sleeping
) -> None:
    database.settled = [False, False, True]

    sleeping.sleep()
    eventually(lambda: "due" in database.steps, "it slept")

    assert database.steps == [
        "begin", "settled", "claim", "settled", "claim", "settled", "claim", "due",
    ]  # fmt: skip


def test_a_claim_that_finds_a_job_while_settling_is_followed_by_another(
    database: Database, sleeping: Sleeping
) -> None:
    database.found = [Found.SOME, Found.NOTHING]

    sleeping.sleep()
    eventually(lambda: "due" in database.steps, "it slept")

    assert database.steps == ["begin", "settled", "claim", "claim", "due"]


def test_a_full_runner_does_not_sleep_and_shows_no_key(
    database: Database, sleeping: Sleeping
) -> None:
    database.found = [Found.FULL]

    sleeping.sleep().result(PATIENCE)

    assert database.steps == ["begin", "settled", "claim", "end"]


def test_it_asks_for_the_next_due_time_after_each_notification_also_one_for_no_job_yet(
    database: Database, sleeping: Sleeping
) -> None:
    sleeping.sleep()
    eventually(lambda: "due" in database.steps, "it slept")

    sleeping.heard("q1")
    eventually(lambda: database.steps.count("due") == 2, "it asked again")

    assert database.steps[3:] == ["due", "claim", "due"]


def test_one_that_was_woken_in_vain_looks_the_next_time_before_it_claims(
    database: Database, sleeping: Sleeping
) -> None:
    """A claim writes, and of a crowd that wakes for one job all but one would do so in vain."""

    def woken(*steps: str) -> None:
        database.steps.clear()
        sleeping.heard("q1")
        eventually(lambda: len(database.steps) >= len(steps), "it had looked")
        assert tuple(database.steps) == steps

    sleeping.sleep()
    eventually(lambda: "due" in database.steps, "it slept")

    woken("claim", "due")
    woken("due")
    woken("due")
    database.due_in = [timedelta(0)]
    database.found = [Found.SOME]
    woken("due", "claim", "claim", "due")
    woken("claim", "due")


def test_a_runner_without_room_asks_for_no_due_time(database: Database, sleeping: Sleeping) -> None:
    database.found = [Found.NOTHING, Found.FULL]

    sleeping.sleep(queues=()).result(PATIENCE)

    assert database.steps == ["begin", "settled", "claim", "claim", "end"]


def test_a_due_job_that_could_not_be_claimed_is_tried_again_without_a_notification(
    database: Database, sleeping: Sleeping
) -> None:
    database.due_in = [timedelta(0), timedelta(seconds=-1), None]

    sleeping.sleep()
    eventually(lambda: database.steps.count("due") == 3, "it went on")

    assert database.steps[2:] == ["claim", "due", "claim", "due", "claim", "due"]


def test_without_keys_it_polls(database: Database, sleeping: Sleeping) -> None:
    database.horizon = None

    sleeping.sleep()
    eventually(lambda: database.claims >= 2, "it polled")

    assert "due" not in database.steps


def test_a_new_connection_means_the_whole_protocol_again(
    database: Database, sleeping: Sleeping
) -> None:
    sleeping.sleep()
    eventually(lambda: "due" in database.steps, "it slept")

    database.generation = 2
    sleeping.sleeper.wake()
    eventually(lambda: database.steps.count("due") == 2, "it slept again")

    assert database.steps[4:] == ["end", "begin", "settled", "claim", "due"]


def test_a_connection_that_changes_between_two_questions_is_noticed_although_nobody_rings(
    database: Database, sleeping: Sleeping
) -> None:
    def reconnect(n: int) -> None:
        if n == 1:
            database.generation = 2

    database.on_claim = reconnect

    sleeping.sleep()
    eventually(lambda: database.steps[-1:] == ["due"] and database.claims == 2, "it slept")

    assert database.steps == [
        "begin", "settled", "claim", "due", "end", "begin", "settled", "claim", "due",
    ]  # fmt: skip


def test_while_the_listener_is_down_it_polls_and_sleeps_once_it_is_up(
    database: Database, sleeping: Sleeping
) -> None:
    database.up = False
    sleeping.sleep()
    eventually(lambda: database.claims >= 2, "it polled")
    assert set(database.steps) == {"claim"}

    database.up, database.generation = True, 2
    sleeping.sleeper.wake()

    eventually(lambda: "due" in database.steps, "it slept")


def test_only_notifications_for_its_own_queues_wake_it(
    database: Database, sleeping: Sleeping
) -> None:
    sleeping.sleep()
    eventually(lambda: "due" in database.steps, "it slept")
    before = database.claims

    for payload in ("q2", "d1", "p1", "", "cx"):
        sleeping.heard(payload)
    assert database.claims == before
    sleeping.heard("q*")

    eventually(lambda: database.claims == before + 1, "it woke")
    assert sleeping.cancelled == []


def test_a_cancellation_is_passed_on(sleeping: Sleeping) -> None:
    sleeping.heard("c42")

    assert sleeping.cancelled == [42]


def test_an_error_of_a_claim_is_the_runners_to_handle(
    database: Database, sleeping: Sleeping
) -> None:
    def fail(n: int) -> None:
        raise ServerUnavailable("while claiming")

    database.on_claim = fail

    with pytest.raises(ServerUnavailable, match="while claiming"):
        sleeping.sleep().result(PATIENCE)

    assert database.steps == ["begin", "settled", "claim", "end"]


def test_a_ring_is_heard_once_and_never_lost() -> None:
    bell = Bell()
    assert not bell.wait(0)
    bell.ring()
    bell.ring()
    assert bell.wait(0)
    assert not bell.wait(0)


def test_a_commit_of_another_connection_wakes_a_sqlite_runner(
    sqlite_app: Tenure, start: Start, tmp_path: Path
) -> None:
    idle = threading.Event()

    @sqlite_app.task
    def work(job: Job) -> None:
        idle.set()

    start(sqlite_app, poll_floor=LONG)
    sqlite_app.enqueue(work)
    comes(idle, "the runner works")
    # Joined, so that nothing in this process rings.
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        job_id = sqlite_app.enqueue(work, connection=connection).job_id
        connection.commit()

    ends(sqlite_app, job_id, JobStatus.COMPLETED)


def test_a_sqlite_runner_starts_a_job_when_it_becomes_due(sqlite_app: Tenure, start: Start) -> None:
    @sqlite_app.task
    def work(job: Job) -> None: ...

    start(sqlite_app, poll_floor=LONG)

    job_id = sqlite_app.enqueue(work, delay=timedelta(seconds=0.3)).job_id

    ends(sqlite_app, job_id, JobStatus.COMPLETED)
