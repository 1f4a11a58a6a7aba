"""Claims that bring the floor of a lane forward, and writers that they must not pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from psycopg.types.json import Jsonb

from tests.postgres.races import (
    MINUTE,
    SECOND,
    Connection,
    SteppedClock,
    call,
    enqueued,
    leased,
    one,
    owner,
)

STEP = 1.1 * SECOND
"""Longer than the pause between two floors and between two closer looks at the writers."""

LANE = 11
"""Priority 5, not solo."""

Write = Callable[[Connection], int]


def floor(connection: Connection, queue: str = "q", lane: int = LANE) -> int:
    """What the session knows of a lane, in microseconds: 0 no floor yet, -1 a lane not met."""
    row = connection.execute(
        "select (current_setting(tenure.floor_setting(%s))::bigint[])[4 + %s]", [queue, lane]
    ).fetchone()
    assert row is not None
    assert isinstance(row[0], int)
    return row[0]


def microseconds(clock: SteppedClock) -> int:
    return int(clock.now.timestamp() * 1_000_000)


def claimed(connection: Connection, queue: str = "q") -> list[int]:
    """The ids of what a claim gets; each is completed at once."""
    leases = call(connection, "claim", [queue], "ada", 5)
    for lease in leases:
        assert one(connection, "complete", *owner(lease)).verdict == "ok"
    return [lease.job_id for lease in leases]


def meet(connection: Connection, *, solo: bool = False) -> None:
    """Let a session meet a lane: only lanes it met have floors."""
    job_id = enqueued(connection)
    connection.execute("update tenure.job set solo = %s where id = %s", [solo, job_id])
    assert claimed(connection) == [job_id]


def press(connection: Connection, clock: SteppedClock, times: int = 3) -> None:
    """Claim again and again as time passes; nothing may be had."""
    for _ in range(times):
        clock.advance(STEP)
        assert claimed(connection) == []


def of_another_queue(connection: Connection) -> None:
    enqueued(connection, "another queue")


def of_a_later_priority(connection: Connection) -> None:
    enqueued(connection, priority=6)


def that_is_solo(connection: Connection) -> None:
    job_id = enqueued(connection)
    connection.execute("update tenure.job set solo = true where id = %s", [job_id])


@dataclass(frozen=True, slots=True)
class Writer:
    """One way to make a job due now: what has to be there, then the write itself."""

    prepare: Callable[[Connection, SteppedClock], Any]
    write: Callable[[Connection, Any], int]
    solo: bool = False


def _nothing(connection: Connection, clock: SteppedClock) -> None: ...


def _lease(connection: Connection, clock: SteppedClock) -> Any:
    return leased(connection, lease_for=60 * MINUTE)


def _failed(connection: Connection, clock: SteppedClock) -> int:
    lease = leased(connection)
    one(connection, "fail", *owner(lease), "Broken", retryable=False)
    return int(lease.job_id)


def _lapsed(connection: Connection, clock: SteppedClock) -> int:
    lease = leased(connection, lease_for=SECOND)
    connection.execute("update tenure.job set buffered = true where id = %s", [lease.job_id])
    clock.advance(2 * SECOND)
    return int(lease.job_id)


def _enqueue_many(connection: Connection, _: Any) -> int:
    [row] = call(connection, "enqueue_many", Jsonb([{"queue": "q", "kind": "work"}]))
    return int(row.job_id)


def _ended(connection: Connection, verb: str, lease: Any, **options: Any) -> int:
    row = one(connection, verb, *owner(lease), **options)
    assert (row.verdict, row.status) == ("ok", "queued")
    return int(row.job_id)


def _settle(connection: Connection, lease: Any) -> int:
    [row] = call(connection, "settle", lease.worker_id, [lease.job_id], [lease.token], ["release"])
    assert (row.verdict, row.status) == ("ok", "queued")
    return int(row.job_id)


def _sweep(connection: Connection, job_id: int) -> int:
    [row] = call(connection, "sweep", "bob")
    assert (row.job_id, row.status) == (job_id, "queued")
    return job_id


def _retry(connection: Connection, job_id: int) -> int:
    assert one(connection, "retry", job_id).verdict == "ok"
    return job_id


WRITERS = {
    "enqueue": Writer(_nothing, lambda c, _: enqueued(c)),
    "enqueue_many": Writer(_nothing, _enqueue_many),
    "release": Writer(_lease, lambda c, lease: _ended(c, "release", lease, started=False)),
    "fail": Writer(
        _lease,
        lambda c, lease: _ended(c, "fail", lease, error_type="Broken", delay=timedelta(0)),
    ),
    "settle": Writer(_lease, _settle),
    "sweep": Writer(_lapsed, _sweep, solo=True),
    "retry": Writer(_failed, _retry),
}


def hold(connection: Connection, what: str) -> None:
    """Leave a transaction open that has nothing to do with jobs."""
    match what:
        case "nothing":
            pass
        case "a write transaction":
            connection.execute("begin; select pg_current_xact_id()")
        case "a snapshot":
            connection.execute("begin isolation level repeatable read; select 1")
