"""Jobs in every state of flight, made with the first schema's own functions.

A job's kind says how it was left. `ADA` holds the leases that go on; `BOB` lost his.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from tests.postgres.races import MINUTE, SECOND, Connection, call, one, owner

ADA, BOB, BROOM = "ada", "bob", "broom"

BEGIN = datetime(2100, 1, 4, 12, tzinfo=UTC)
"""So far ahead that nothing of it is ever past its keep time by a real clock."""

LEFT = BEGIN + 2 * MINUTE
"""When the last of it was done."""

LONG, SHORT = 20 * MINUTE, SECOND


def leave_jobs(connection: Connection) -> None:
    """Fill an empty install that has the tests' clock."""
    connection.execute("select setseed(0.5)")  # of the jitter of a backoff
    _stand_at(connection, BEGIN - timedelta(days=2))
    _ended_jobs(connection)
    _stand_at(connection, BEGIN)
    call(connection, "maintain")
    call(connection, "worker_seen", ADA, ["mail"], Jsonb({"host": "here"}))
    _ended_jobs(connection)
    _jobs_to_sweep(connection)
    _stand_at(connection, BEGIN + MINUTE)
    assert len(call(connection, "sweep", BROOM)) == 5
    one(connection, "claim", ["solo"], ADA, 1, LONG)
    _jobs_to_lapse(connection)
    _stand_at(connection, LEFT)
    _take_over(connection)
    _running_jobs(connection)
    _waiting_jobs(connection)


def _stand_at(connection: Connection, instant: datetime) -> None:
    connection.execute("update tenure.test_clock set at = %s", [instant])


def _new(connection: Connection, kind: str, queue: str = "mail", **options: Any) -> int:
    row = one(connection, "enqueue", queue, kind, Jsonb({"left": kind}), **options)
    return int(row.job_id)


def _lent(
    connection: Connection, kind: str, worker_id: str = ADA, lease_for: timedelta = LONG, **job: Any
) -> Any:
    return one(connection, "claim_job", _new(connection, kind, **job), worker_id, lease_for)


def _ended_jobs(connection: Connection) -> None:
    """Of a day without a partition at the first call, of one with it at the second."""
    done = _lent(connection, "completed", dedup_key="done")
    one(connection, "complete", *owner(done), Jsonb("sent"))
    failed = _lent(connection, "failed")
    one(connection, "fail", *owner(failed), "Broken", "no address", "line 1", retryable=False)
    one(connection, "cancel", _new(connection, "cancelled"))


def _jobs_to_sweep(connection: Connection) -> None:
    _lent(connection, "lapsed, swept", BOB, SHORT, max_attempts=1)
    _lent(connection, "timed out", BOB, LONG, timeout=SHORT)
    _batch(connection, "solo", BOB, SHORT, 3)


def _jobs_to_lapse(connection: Connection) -> None:
    _lent(connection, "lapsed", BOB, SHORT)
    _lent(connection, "lapsed on the last attempt", BOB, SHORT, max_attempts=1)
    _lent(connection, "lapsed, taken over", BOB, SHORT)
    sealed = _lent(connection, "sealed, lapsed", BOB, SHORT)
    one(connection, "seal", *owner(sealed), Jsonb("half done"))
    asked = _lent(connection, "cancel requested, lapsed", BOB, SHORT)
    one(connection, "cancel", asked.job_id)
    _batch(connection, "buffered, lapsed", BOB, SHORT)


def _take_over(connection: Connection) -> None:
    for lease in call(connection, "lapsed", 100):
        row = connection.execute("select kind from tenure.job where id = %s", [lease.job_id])
        if row.fetchall() == [("lapsed, taken over",)]:
            one(connection, "reclaim", *owner(lease), lease.lease_expires_at, ADA, LONG)


def _batch(
    connection: Connection, kind: str, worker_id: str, lease_for: timedelta, jobs: int = 2
) -> None:
    """Jobs out of one claim of several, on a queue of their own."""
    for _ in range(jobs):
        _new(connection, kind, kind)
    assert len(call(connection, "claim", [kind], worker_id, jobs, lease_for)) == jobs


def _running_jobs(connection: Connection) -> None:
    for kind in ("running", "running, to fail", "running, to release", "running, to guard"):
        _lent(connection, kind, dedup_key=kind)
    _lent(connection, "running on the last attempt", max_attempts=1)
    _lent(connection, "running under a timeout", timeout=60 * MINUTE)
    progress = _lent(connection, "running, with progress")
    one(connection, "update_owned", *owner(progress), Jsonb({"done": 0.5}))
    sealed = _lent(connection, "sealed")
    one(connection, "seal", *owner(sealed), Jsonb("half done"))
    asked = _lent(connection, "cancel requested")
    one(connection, "cancel", asked.job_id)
    _batch(connection, "buffered", ADA, LONG)


def _waiting_jobs(connection: Connection) -> None:
    _new(connection, "queued", meta=Jsonb({"trace": 1}), priority=0, dedup_key="waits")
    _new(connection, "delayed", delay=60 * MINUTE)
    for kind, verb, arguments in (
        ("retrying", "fail", ("Broken", "no address", "line 1")),
        ("released", "release", (True,)),
    ):
        lease = _lent(connection, kind)
        one(connection, verb, *owner(lease), *arguments, delay=5 * SECOND)
    again = _lent(connection, "retried by an operator", max_attempts=1)
    one(connection, "fail", *owner(again), "Broken")
    one(connection, "retry", again.job_id)
    _new(connection, "paused", "paused")
    one(connection, "pause", "paused")
