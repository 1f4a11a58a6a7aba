"""Many sessions at once for a few seconds: no floor passes a job and no wake-up is lost."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.postgres.races import Connection, call, enqueued, one, owner, started

Session = Callable[[], Connection]

SECONDS = 4.0
PATIENCE = 18.0
"""Seconds after which a job that nobody took is called lost."""

LINGERING_CLOCK = """
create or replace function tenure.clock()
  returns timestamptz
  language plpgsql
  volatile
  security definer
  set search_path = tenure, pg_temp
as $$
declare
  v_now timestamptz := pg_catalog.clock_timestamp();
begin
  -- Whoever goes on from a reading only after a while has the worst luck there is.
  if current_setting('tests.linger', true) = 'on' then
    perform pg_sleep(random() * 0.04);
  end if;
  return v_now;
end;
$$;
"""


@pytest.fixture
def owner_of_all(session: Session) -> Connection:
    """Sets the database up so that floors move as often as claims are made."""
    connection = session()
    connection.execute(LINGERING_CLOCK)
    [(source,)] = connection.execute(
        "select pg_get_functiondef('tenure.lane_floors'::regproc)"
    ).fetchall()
    for pause, shorter in (("+ 100000 ", "+ 2000 "), ("+ 1000000;", "+ 4000;")):
        assert source.count(pause) == 1, pause
        source = source.replace(pause, shorter)
    connection.execute(source.encode())
    return connection


def lingers(connection: Connection) -> None:
    connection.execute("set tests.linger = 'on'")


def produce(connection: Connection, end: float, dice: random.Random) -> int:
    """Enqueue in transactions that stay open and sometimes roll back; how many were kept."""
    lingers(connection)
    kept = 0
    while time.monotonic() < end:
        connection.execute("begin")
        made = 0
        for _ in range(dice.choice([1, 1, 1, 3])):
            if dice.random() < 0.3:
                jobs = [{"queue": "q", "kind": "work"}] * dice.randint(1, 3)
                made += len(call(connection, "enqueue_many", Jsonb(jobs), notify=False))
            else:
                enqueued(connection, notify=False)
                made += 1
        if dice.random() < 0.3:
            time.sleep(dice.random() * 0.1)
        if dice.random() < 0.1:
            connection.execute("rollback")
        else:
            connection.execute("commit")
            kept += made
    return kept


Leases = queue.SimpleQueue[Any]


def finish(connection: Connection, verb: str, lease: Any, *args: Any, **named: Any) -> None:
    # A claim that came too late for the row has it locked for an instant.
    while (verdict := one(connection, verb, *owner(lease), *args, **named).verdict) == "deferred":
        pass
    assert verdict == "ok"


def consume(
    connection: Connection, back: Leases, stop: threading.Event, dice: random.Random
) -> int:
    """Claim, and complete or hand on, all the time; how many were completed."""
    worker_id = f"worker {dice.random()}"
    completed = 0
    while not stop.is_set():
        leases = call(connection, "claim", ["q"], worker_id, 5)
        if not leases:
            time.sleep(0.002)
        for lease in leases:
            if dice.random() < 0.2:
                back.put(lease)
            else:
                finish(connection, "complete", lease)
                completed += 1
    return completed


def give_back(connection: Connection, back: Leases, dice: random.Random) -> None:
    """Put jobs back into the queue, due at once."""
    lingers(connection)
    while lease := back.get():
        if dice.random() < 0.5:
            finish(connection, "release", lease, False)
        else:
            finish(connection, "fail", lease, "Broken", delay=timedelta(0))


def left_behind(connection: Connection) -> int:
    """The jobs that are not ended when nothing has changed for a long time."""
    count, since = -1, time.monotonic()
    while count != 0 and time.monotonic() < since + PATIENCE:
        [(now,)] = connection.execute("select count(*) from tenure.job").fetchall()
        if now != count:
            count, since = now, time.monotonic()
        time.sleep(0.05)
    return count


def test_no_floor_passes_a_job(owner_of_all: Connection, session: Session) -> None:
    """For the most part, while an unrelated transaction that has written stays open."""
    end = time.monotonic() + SECONDS
    back: Leases = queue.SimpleQueue()
    stop = threading.Event()
    giver = started(partial(give_back, session(), back, random.Random(0)))
    producers = [
        started(partial(produce, session(), end, random.Random(seed))) for seed in range(1, 9)
    ]
    consumers = [
        started(partial(consume, session(), back, stop, random.Random(seed)))
        for seed in range(11, 13)
    ]
    held = session()
    time.sleep(SECONDS / 4)
    held.execute("begin; select pg_current_xact_id()")

    kept = sum(run.result(SECONDS + 20) for run in producers)
    left = left_behind(owner_of_all)
    stop.set()
    completed = sum(run.result(PATIENCE) for run in consumers)
    back.put(None)
    giver.result(PATIENCE)
    held.execute("rollback")

    assert kept > 100
    assert left == 0
    ended = owner_of_all.execute("select status::text, count(*) from tenure.jobs group by 1")
    counts: dict[str, int] = dict(ended.fetchall())
    assert counts.get("completed") == completed
    assert completed + counts.get("failed", 0) == kept


def sleep_and_work(
    listening: Connection, claiming: Connection, name: str, stop: threading.Event
) -> int:
    """The protocol of sleep_begin, without a poll floor; how many jobs were done."""
    done = 0

    def take() -> bool:
        nonlocal done
        leases = call(claiming, "claim", [name], "ada", 5)
        for lease in leases:
            assert one(claiming, "complete", *owner(lease)).verdict == "ok"
        done += len(leases)
        return bool(leases)

    def wait(seconds: float) -> None:
        for notice in listening.notifies(timeout=seconds):
            if notice.payload == mine:
                return

    listening.execute(f"listen {one(listening, 'channel')[0]}".encode())
    mine = f"q{one(listening, 'queue_key', name)[0]}"
    while not stop.is_set():
        if take():
            continue
        # What was heard by now is of jobs that the next claim sees; it must not cut a sleep short.
        for _ in listening.notifies(timeout=0):
            pass
        horizon = one(listening, "sleep_begin", [name])[0]
        if horizon is None:
            continue
        settled, pause = False, 0.001
        while True:
            settled = settled or one(listening, "sleep_settled", horizon)[0]
            if take():
                break
            if settled:
                wait(60)
                break
            wait(pause)
            pause = min(1.0, 2 * pause)
        call(listening, "sleep_end")
    return done


def enqueue_and_look(
    producing: Connection, watching: Connection, name: str, end: float, dice: random.Random
) -> int:
    """Enqueue one job at a time in a transaction left open; each must be gone before the next."""
    jobs = 0
    while time.monotonic() < end:
        time.sleep(dice.random() * 0.004)
        producing.execute("begin")
        job_id = enqueued(producing, name)
        if dice.random() < 0.7:
            time.sleep(dice.random() * 0.006)
        producing.execute("commit")
        jobs += 1
        committed = time.monotonic()
        while watching.execute("select 1 from tenure.job where id = %s", [job_id]).fetchone():
            assert time.monotonic() < committed + PATIENCE, f"nobody woke for job {job_id}"
            time.sleep(0.001)
    return jobs


def test_no_wake_up_is_lost(session: Session) -> None:
    names = [f"q{pair}" for pair in range(4)]
    stop, end = threading.Event(), time.monotonic() + SECONDS
    sleepers = [
        started(partial(sleep_and_work, session(), session(), name, stop)) for name in names
    ]
    producers = [
        started(partial(enqueue_and_look, session(), session(), name, end, random.Random(name)))
        for name in names
    ]

    jobs = [run.result(SECONDS + 2 * PATIENCE) for run in producers]
    stop.set()
    call(session(), "wake", names)
    done = [run.result(PATIENCE) for run in sleepers]

    assert min(jobs) > 10
    assert done == jobs
