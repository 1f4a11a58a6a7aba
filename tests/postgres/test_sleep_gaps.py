"""The moments in which a wake-up could be lost between a last look and sleep."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.postgres.ear import Ear
from tests.postgres.floors import STEP, WRITERS, claimed, hold, press
from tests.postgres.races import (
    LONGEST_WAIT,
    SECOND,
    Connection,
    Gate,
    SteppedClock,
    call,
    enqueued,
    one,
    started,
)
from tests.postgres.test_wakeups import key, sleeps

Session = Callable[[], Connection]


@pytest.fixture
def worker(session: Session, clock: SteppedClock) -> Connection:
    """Claims, for the sleeper."""
    return session()


@pytest.fixture
def sleeper(session: Session) -> Connection:
    return session()


@pytest.fixture
def producer(session: Session) -> Connection:
    return session()


@pytest.fixture
def ear(session: Session) -> Ear:
    return Ear(session(), session())


def settled(connection: Connection, horizon: int) -> bool:
    (settled,) = one(connection, "sleep_settled", horizon)
    assert isinstance(settled, bool)
    return settled


def due_in(connection: Connection, queue: str = "q") -> timedelta | None:
    found = one(connection, "next_due", [queue]).due_in
    assert found is None or isinstance(found, timedelta)
    return found


def test_a_job_that_came_between_an_empty_claim_and_sleep_is_claimed(
    worker: Connection, sleeper: Connection, producer: Connection, ear: Ear
) -> None:
    assert claimed(worker) == []
    job_id = enqueued(producer)
    assert ear.heard() == []

    assert settled(sleeper, sleeps(sleeper))
    assert claimed(worker) == [job_id]


def test_a_job_that_comes_after_the_last_claim_is_notified(
    worker: Connection, sleeper: Connection, producer: Connection, ear: Ear
) -> None:
    assert settled(sleeper, sleeps(sleeper))
    assert claimed(worker) == []

    job_id = enqueued(producer)

    assert ear.heard() == [key(worker)]
    assert claimed(worker) == [job_id]


@pytest.mark.parametrize("verb", [*WRITERS, "resume"])
def test_nothing_is_settled_before_a_writer_that_looked_for_sleepers_has_ended(
    worker: Connection,
    sleeper: Connection,
    producer: Connection,
    session: Session,
    clock: SteppedClock,
    ear: Ear,
    verb: str,
) -> None:
    prepare, write = _writer(verb)
    other = session()
    for beside in ("nothing", "a write transaction"):
        what = prepare(producer, clock)
        hold(other, beside)
        producer.execute("begin")
        job_id = write(producer, what)

        horizon = sleeps(sleeper)
        for _ in range(3):
            assert not settled(sleeper, horizon), beside
            press(worker, clock, 1)
        producer.execute("commit")

        assert ear.heard() == []
        assert settled(sleeper, horizon), beside
        assert claimed(worker) == [job_id]
        call(sleeper, "sleep_end")
        other.execute("rollback")


def _writer(verb: str) -> tuple[Callable[..., Any], Callable[..., int]]:
    if verb != "resume":
        return WRITERS[verb].prepare, WRITERS[verb].write

    def paused(connection: Connection, clock: SteppedClock) -> int:
        call(connection, "pause", "q")
        return enqueued(connection)

    def resume(connection: Connection, job_id: int) -> int:
        assert one(connection, "resume", "q").verdict == "ok"
        return job_id

    return paused, resume


def test_a_writer_that_was_rolled_back_keeps_nobody_awake(
    worker: Connection, sleeper: Connection, producer: Connection
) -> None:
    producer.execute("begin")
    enqueued(producer)
    horizon = sleeps(sleeper)
    assert not settled(sleeper, horizon)

    producer.execute("rollback")

    assert settled(sleeper, horizon)
    assert claimed(worker) == []


@pytest.mark.parametrize("beside", ["a write transaction", "a snapshot"])
def test_a_transaction_without_jobs_keeps_nobody_awake(
    sleeper: Connection, producer: Connection, clock: SteppedClock, beside: str
) -> None:
    hold(producer, beside)

    assert settled(sleeper, sleeps(sleeper))


def test_a_writer_that_begins_while_a_sleeper_takes_its_keys_is_waited_for(
    worker: Connection,
    sleeper: Connection,
    producer: Connection,
    watcher: Connection,
    gate: Gate,
    ear: Ear,
) -> None:
    worker.execute(_KEYS_AT_THE_GATE)
    with gate.closed(sleeper, "keys"):
        begins = started(lambda: sleeps(sleeper))
        assert gate.stopped(watcher, sleeper, begins)
        producer.execute("begin")
        job_id = enqueued(producer)
    horizon = begins.result(LONGEST_WAIT)

    assert not settled(sleeper, horizon)
    producer.execute("commit")
    assert ear.heard() == []
    assert settled(sleeper, horizon)
    assert claimed(worker) == [job_id]


_KEYS_AT_THE_GATE = """
alter function tenure.install_key() rename to install_key_in_fact;

create function tenure.install_key()
  returns integer
  language plpgsql
  volatile
  security definer
  set search_path = tenure, pg_temp
as $$
begin
  if current_setting('tests.stop', true) = 'keys' then
    perform pg_advisory_lock_shared(7), pg_advisory_unlock_shared(7);
  end if;
  return install_key_in_fact();
end;
$$;
"""


def test_a_job_in_a_lane_that_the_worker_never_met_is_claimed(
    worker: Connection, producer: Connection, clock: SteppedClock
) -> None:
    for priority in (3, 7):
        enqueued(producer, priority=priority)
    assert len(claimed(worker)) == 2
    press(worker, clock)

    for priority in (0, 5, 9, 3, 7):
        job_id = enqueued(producer, priority=priority, delay=STEP)
        assert due_in(worker) == STEP
        clock.advance(STEP)
        assert claimed(worker) == [job_id]
    job_id = enqueued(producer, priority=4)
    producer.execute("update tenure.job set solo = true where id = %s", [job_id])
    assert claimed(worker) == [job_id]


def test_a_job_that_was_locked_while_the_worker_looked_keeps_it_awake(
    worker: Connection, sleeper: Connection, producer: Connection, clock: SteppedClock, ear: Ear
) -> None:
    job_id = enqueued(producer)
    assert settled(sleeper, sleeps(sleeper))
    producer.execute("begin")
    assert one(producer, "claim_job", job_id, "bob") is not None

    clock.advance(STEP)
    assert claimed(worker) == []
    found = due_in(worker)
    assert found is not None
    assert found <= timedelta(0)
    producer.execute("rollback")

    assert ear.heard() == []
    assert claimed(worker) == [job_id]
    assert due_in(worker) is None


def test_the_next_due_time_is_the_earliest_of_all_lanes(
    worker: Connection, producer: Connection, clock: SteppedClock
) -> None:
    for queue, priority, seconds in (("q", 0, 50), ("q", 9, 20), ("r", 5, 10), ("s", 5, 40)):
        enqueued(producer, queue, priority=priority, delay=seconds * SECOND)
    call(producer, "pause", "r")

    found = one(worker, "next_due", ["q", "r", "s", "nowhere"])

    assert (found.due_at, found.due_in) == (clock.now + 20 * SECOND, 20 * SECOND)
    assert due_in(worker, "r") is None
    call(producer, "resume", "r")
    assert due_in(worker, "r") == 10 * SECOND


def test_after_a_reconnect_the_whole_protocol_finds_what_came_meanwhile(
    worker: Connection, session: Session, producer: Connection, watcher: Connection, ear: Ear
) -> None:
    sleeper = session()
    assert settled(sleeper, sleeps(sleeper))
    watcher.execute("select pg_terminate_backend(%s, 5000)", [sleeper.info.backend_pid])

    job_id = enqueued(producer)
    assert ear.heard() == []

    sleeper = session()
    assert settled(sleeper, sleeps(sleeper))
    assert claimed(worker) == [job_id]
    assert claimed(worker) == []
    enqueued(producer)
    assert ear.heard() == [key(worker)]
