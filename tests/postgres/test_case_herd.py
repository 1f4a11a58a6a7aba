"""O20: how many notifications there are, and how many are woken by one job."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from psycopg.types.json import Jsonb

from tenure.waker import Waker
from tests.postgres.ear import Ear
from tests.postgres.races import (
    LONGEST_WAIT,
    Connection,
    call,
    connected,
    enqueued,
    one,
    wait_until,
)
from tests.postgres.test_idle_runner import Idle, running

Session = Callable[[], Connection]

PRODUCERS = 4
EACH = 25
RUNNERS = 4


@pytest.fixture
def ear(session: Session) -> Ear:
    return Ear(session(), session())


def produce(session: Session, make: Callable[[Connection], object]) -> None:
    """Let some sessions enqueue at once, in transactions of their own, one after the other."""
    ready = threading.Barrier(PRODUCERS)
    connections = [session() for _ in range(PRODUCERS)]

    def one_of_them(connection: Connection) -> None:
        ready.wait()
        for _ in range(EACH):
            make(connection)

    with ThreadPoolExecutor(PRODUCERS) as pool:
        list(pool.map(one_of_them, connections))


def test_a_producer_notifies_nobody_when_nobody_sleeps(session: Session, ear: Ear) -> None:
    """Of two that look at the same instant each may take the other for a sleeper."""
    producer = session()
    for _ in range(EACH):
        enqueued(producer)

    assert ear.heard() == []


def test_forty_sleepers_cost_a_producer_one_notification_a_call(session: Session, ear: Ear) -> None:
    for _ in range(40):
        assert one(session(), "sleep_begin", ["q"])[0] is not None

    produce(session, lambda connection: enqueued(connection))
    single = ear.heard()
    jobs = Jsonb([{"queue": "q", "kind": "work"}] * 20)
    produce(session, lambda connection: call(connection, "enqueue_many", jobs))
    many = ear.heard()

    key = f"q{one(session(), 'queue_key', 'q')[0]}"
    assert single == [key] * (PRODUCERS * EACH)
    assert many == [key] * (PRODUCERS * EACH)


def test_jobs_of_one_transaction_are_one_notification(session: Session, ear: Ear) -> None:
    assert one(session(), "sleep_begin", ["q"])[0] is not None
    producer = session()

    producer.execute("begin")
    for _ in range(20):
        enqueued(producer)
    producer.execute("commit")

    assert len(ear.heard()) == 1


def test_commits_that_come_while_one_is_announced_are_announced_together() -> None:
    """In place of a throttle for each queue, which DESIGN has not."""
    announced: list[list[str]] = []
    first, go_on = threading.Event(), threading.Event()

    def wake(queues: list[str]) -> None:
        announced.append(queues)
        first.set()
        assert go_on.wait(LONGEST_WAIT)

    waker = Waker(wake)
    waker.note(["q"])
    assert first.wait(LONGEST_WAIT)
    for n in range(1000):
        waker.note([f"q{n % 2}"])
    go_on.set()
    assert waker.flush(LONGEST_WAIT)
    waker.close()

    assert announced == [["q"], ["q0", "q1"]]


@pytest.fixture
def herd(fresh_dsn: str) -> Iterator[list[Idle]]:
    """Runners that sleep on one queue."""
    with ExitStack() as stack:
        watcher = stack.enter_context(connected(fresh_dsn))
        herd = [Idle(fresh_dsn, watcher) for _ in range(RUNNERS)]
        for idle in herd:
            stack.enter_context(running(idle))
        yield herd


def asleep(herd: list[Idle]) -> None:
    """Wait until each has asked, as the last thing before it sleeps, when a job is due."""
    wait_until(
        "all of them sleep",
        lambda: (
            (
                herd[0]
                .watcher.execute(
                    """
                select count(*)
                  from pg_stat_activity
                 where datname = current_database()
                   and state = 'idle'
                   and query like '%%next_due%%'
                   and pid <> pg_backend_pid()
                """
                )
                .fetchone()
                == (RUNNERS,)
            )
            and all(idle.runner.running == 0 for idle in herd)
        ),
        seconds=30,
    )


def test_those_who_are_woken_for_one_job_and_find_nothing_sleep_on(
    herd: list[Idle], fresh_dsn: str
) -> None:
    asleep(herd)
    before = [idle.backing.claims for idle in herd]

    with connected(fresh_dsn) as producer:
        job_id = enqueued(producer)
        wait_until("somebody has done it", lambda: any(job_id in idle.started for idle in herd), 30)
    asleep(herd)

    assert sum(job_id in idle.started for idle in herd) == 1
    claims = [idle.backing.claims - then for idle, then in zip(herd, before, strict=True)]
    # One that may find it, then looks until nobody can have enqueued another unseen.
    assert max(claims) <= 8, claims
