"""O27: whoever changes many rows at once takes them in one order, so nobody deadlocks."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from psycopg.types.json import Jsonb

from tests.postgres.races import (
    LONGEST_WAIT,
    Connection,
    call,
    one,
    started,
    wait_until_blocked,
)

Session = Callable[[], Connection]
Act = Callable[[Connection, random.Random], object]

ROUNDS = 12
KEYS = [f"k{n}" for n in range(50)]
SHORT = timedelta(milliseconds=100)


def enqueue(connection: Connection, dice: random.Random) -> None:
    """All the keys, in another order each time."""
    keys = dice.sample(KEYS, len(KEYS))
    jobs = [
        {"queue": "q", "kind": "work", "dedup_key": key, "max_attempts": dice.randint(1, 3)}
        for key in keys
    ]
    assert len(call(connection, "enqueue_many", Jsonb(jobs))) == len(keys)


def finish(connection: Connection, dice: random.Random) -> None:
    """Claim, then settle and renew whatever anybody holds, as if it were one's own."""
    call(connection, "claim", ["q"], "ada", 50, SHORT)
    held = call(connection, "held", "ada")
    dice.shuffle(held)
    if not held:
        return
    job_ids, tokens = [lease.job_id for lease in held], [lease.token for lease in held]
    verbs = [dice.choice(["complete", "fail", "release"]) for _ in held]
    now = [timedelta(0)] * len(held)
    assert len(call(connection, "settle", "ada", job_ids, tokens, verbs, delays=now)) == len(held)
    assert len(call(connection, "renew", "ada", job_ids[::-1], tokens[::-1])) == len(held)


def sweep(connection: Connection, dice: random.Random) -> None:
    call(connection, "sweep", "bob", 1000)
    call(connection, "maintain")


def operate(connection: Connection, dice: random.Random) -> None:
    rows = connection.execute("select job_id, status::text from tenure.jobs").fetchall()
    for job_id, status in dice.sample(rows, min(5, len(rows))):
        verb = "cancel" if status in ("queued", "running") else "retry"
        assert one(connection, verb, job_id).job_id == job_id


CROWD: list[tuple[int, Act]] = [(8, finish), (4, enqueue), (2, sweep), (1, operate)]


@pytest.mark.timeout(180)
def test_a_crowd_over_the_same_jobs_and_keys_never_deadlocks(session: Session) -> None:
    """Each statement may take any of the rows, and each of the crowd names them in its own order.

    A deadlock would be raised to whichever of the crowd met it, and so would a wait of 10 s.
    """
    crowd = [act for number, act in CROWD for _ in range(number)]
    ready = threading.Barrier(len(crowd))

    def member(act: Act, connection: Connection, seed: int) -> int:
        dice = random.Random(seed)
        connection.execute("set statement_timeout = '60s'")
        ready.wait()
        for _ in range(ROUNDS):
            act(connection, dice)
        return ROUNDS

    runs = [started(partial(member, act, session(), seed)) for seed, act in enumerate(crowd)]

    assert [run.result(150) for run in runs] == [ROUNDS] * len(crowd)


def test_two_batches_of_the_same_keys_in_opposite_orders_do_not_deadlock(
    session: Session, watcher: Connection
) -> None:
    """Arranged: neither has all its keys when it meets the other."""
    first, second, keeper = session(), session(), session()
    middle = "k25"
    keeper.execute("begin")
    one(keeper, "enqueue", "q", "work", dedup_key=middle)

    def batch(connection: Connection, keys: list[str]) -> list[bool]:
        jobs = Jsonb([{"queue": "q", "kind": "work", "dedup_key": key} for key in keys])
        return [row.created for row in call(connection, "enqueue_many", jobs)]

    up = started(lambda: batch(first, sorted(KEYS)))
    wait_until_blocked(watcher, first, by=keeper)
    down = started(lambda: batch(second, sorted(KEYS, reverse=True)))
    wait_until_blocked(watcher, second, by=first)
    keeper.execute("rollback")

    created, found = up.result(LONGEST_WAIT), down.result(LONGEST_WAIT)
    assert created == [True] * len(KEYS)
    assert found == [False] * len(KEYS)
