"""Batches that want the same rows and the same keys, in whatever order."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from psycopg.types.json import Jsonb

from tests.postgres.races import (
    LONGEST_WAIT,
    MINUTE,
    SECOND,
    Connection,
    SteppedClock,
    call,
    leased,
    one,
    owner,
    started,
    wait_until_blocked,
)

Session = Callable[[], Connection]


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_batch_that_waits_for_a_key_holds_no_later_one(
    session: Session, watcher: Connection, end: str
) -> None:
    worker, first, second = session(), session(), session()
    lease = leased(worker, dedup_key="a")
    worker.execute("begin")
    assert one(worker, "complete", *owner(lease)).verdict == "ok"

    jobs = [{"queue": "q", "kind": "work", "dedup_key": key} for key in ("c", "a", "b")]
    batch = started(lambda: call(first, "enqueue_many", Jsonb(jobs)))
    wait_until_blocked(watcher, first, by=worker)
    for key in ("b", "c"):
        assert one(second, "enqueue", "q", "work", dedup_key=key).created
    worker.execute(end)

    created = {row.ordinal: row.created for row in batch.result(LONGEST_WAIT)}
    assert created == {1: False, 2: end == "commit", 3: False}


def test_batches_in_any_order_never_deadlock(session: Session, clock: SteppedClock) -> None:
    """Settlements, enqueues by key, sweeps and upkeep of the same rows, all at once, for 2 s."""
    end = time.monotonic() + 2
    keys = [f"key {n}" for n in range(30)]

    def enqueue(connection: Connection, dice: random.Random) -> int:
        done = 0
        while time.monotonic() < end:
            dice.shuffle(keys_here := list(keys))
            jobs = [{"queue": "q", "kind": "work", "dedup_key": key} for key in keys_here]
            assert len(call(connection, "enqueue_many", Jsonb(jobs))) == len(keys)
            done += 1
        return done

    def settle(connection: Connection, dice: random.Random) -> int:
        done = 0
        while time.monotonic() < end:
            # Everybody claims under one name and settles whatever that name holds.
            call(connection, "claim", ["q"], "ada", 50, SECOND)
            held = call(connection, "held", "ada")
            dice.shuffle(held)
            verbs = [dice.choice(["complete", "fail", "release"]) for _ in held]
            if held:
                answers = call(
                    connection,
                    "settle",
                    "ada",
                    [lease.job_id for lease in held],
                    [lease.token for lease in held],
                    verbs,
                    delays=[0 * SECOND] * len(held),
                )
                assert len(answers) == len(held)
                call(
                    connection,
                    "renew",
                    "ada",
                    [lease.job_id for lease in held],
                    [lease.token for lease in held],
                )
            done += 1
        return done

    def sweep(connection: Connection, dice: random.Random) -> int:
        done = 0
        while time.monotonic() < end:
            clock.advance(MINUTE)
            call(connection, "sweep", f"sweeper {done}")
            done += 1
        return done

    def maintain(connection: Connection, dice: random.Random) -> int:
        done = 0
        while time.monotonic() < end:
            # Partitions are made, and dropped after thirty days, while jobs end.
            clock.advance(timedelta(hours=12))
            call(connection, "maintain")
            done += 1
        return done

    acts = [enqueue, enqueue, enqueue, settle, settle, settle, sweep, maintain]
    runs = [started(partial(act, session(), random.Random(n))) for n, act in enumerate(acts)]

    assert all(run.result(LONGEST_WAIT) > 5 for run in runs)
