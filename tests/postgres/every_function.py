"""One call at least of every function that a role can be given, each with an answer to show."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from tests.postgres.races import Connection, wait_until

SOON = timedelta(milliseconds=100)
"""The shortest lease there is."""


@dataclass
class Caller:
    """Calls functions of one install on one session, and remembers which."""

    connection: Connection
    schema: str = "tenure"
    called: set[str] = field(default_factory=set)

    def rows(self, function: str, /, *args: Any, **named: Any) -> list[Any]:
        self.called.add(function)
        places = [sql.Placeholder() for _ in args]
        names = [sql.SQL("p_{} => {}").format(sql.SQL(n), sql.Placeholder()) for n in named]
        query = sql.SQL("select * from {}({})").format(
            sql.Identifier(self.schema, function), sql.SQL(", ").join([*places, *names])
        )
        return self.connection.execute(query, [*args, *named.values()]).fetchall()

    def one(self, function: str, /, *args: Any, **named: Any) -> Any:
        [row] = self.rows(function, *args, **named)
        return row

    def value(self, function: str, /, *args: Any, **named: Any) -> Any:
        return self.one(function, *args, **named)[0]

    def verb(self, function: str, lease: Any, /, *args: Any, **named: Any) -> tuple[str, str]:
        """Call a worker's verb under its lease; the verdict and the status."""
        row = self.one(function, lease.job_id, lease.worker_id, lease.token, *args, **named)
        return row.verdict, row.status


def call_every_function(
    produce: Caller, work: Caller, operate: Caller, queue: str = "q", worker_id: str = "ada"
) -> list[int]:
    """Take ten jobs through their lives; the callers may share a session. Returns the ids."""
    made = produce.one("enqueue", queue, "work", Jsonb({"n": 0}), dedup_key="first")
    assert made.created
    rest = produce.rows("enqueue_many", Jsonb([{"queue": queue, "kind": "work"}] * 9), notify=False)
    assert [row.created for row in rest] == [True] * 9
    produce.rows("wake", [queue])
    assert produce.value("try_wake", [queue])
    _wait(produce, made.job_id)
    ids = [made.job_id, *(row.job_id for row in rest)]
    for caller in (produce, work, operate):
        assert caller.value("schema_version")
        assert caller.value("cancel_requested", made.job_id) is False

    _be_a_worker(work, queue, worker_id)
    _take_over(work, operate, queue, worker_id)
    _end(work, operate, queue, worker_id)
    _keep(work, operate, queue)
    return ids


def _wait(produce: Caller, job_id: int) -> None:
    assert produce.value("channel").startswith("tenure_")
    horizon = produce.value("wait_begin", [job_id])
    wait_until("the wait settled", lambda: bool(produce.value("sleep_settled", horizon)))
    assert produce.one("results", [job_id]).status == "queued"
    produce.rows("sleep_end")


def _be_a_worker(work: Caller, queue: str, worker_id: str) -> None:
    work.rows("worker_seen", worker_id, [queue], Jsonb({"host": "here"}))
    assert work.value("channel").startswith("tenure_")
    assert isinstance(work.value("queue_key", queue), int)
    assert work.value("poll_floor") == timedelta(seconds=30)
    horizon = work.value("sleep_begin", [queue])
    wait_until("the sleeper settled", lambda: bool(work.value("sleep_settled", horizon)))
    assert work.one("next_due", [queue]).due_in <= timedelta(0)
    work.rows("sleep_end")


def _take_over(work: Caller, operate: Caller, queue: str, worker_id: str) -> None:
    """A lapse that is reclaimed, and one for each who may sweep."""
    lease = _lapsed(work, work, queue, worker_id)
    new = work.one("reclaim", lease.job_id, worker_id, lease.token, lease.lease_expires_at, "bob")
    assert (new.job_id, new.token) == (lease.job_id, lease.token + 1)
    assert work.verb("complete", new) == ("ok", "completed")
    for sweeper in (work, operate):
        lease = _lapsed(work, sweeper, queue, worker_id)
        swept = sweeper.one("sweep", "bob")
        assert (swept.job_id, swept.token) == (lease.job_id, lease.token)
        assert (swept.outcome, swept.status) == ("lost", "queued")


def _lapsed(work: Caller, looking: Caller, queue: str, worker_id: str) -> Any:
    candidate = work.value("next_eligible_job_id", [queue])
    lease = work.one("claim_job", candidate, worker_id, SOON)
    wait_until("the lease lapsed", lambda: len(looking.rows("lapsed")) == 1)
    assert looking.one("lapsed").job_id == candidate
    return lease


def _end(work: Caller, operate: Caller, queue: str, worker_id: str) -> None:
    leases = work.rows("claim", [queue], worker_id, 7)
    assert len(leases) == 7
    ids, tokens = [lease.job_id for lease in leases], [lease.token for lease in leases]
    renewed = work.rows("renew", worker_id, ids, tokens)
    assert {(row.job_id, row.outcome) for row in renewed} == {(i, "renewed") for i in ids}
    assert {row.job_id for row in work.rows("held", worker_id)} == set(ids)

    sealed, failed, given_back, cancelled, *batch = leases
    work.rows("guard", sealed.job_id, worker_id, sealed.token)
    assert work.verb("update_owned", sealed, Jsonb("half")) == ("ok", "running")
    assert work.verb("seal", sealed, Jsonb("whole")) == ("ok", "running")
    assert work.verb("complete", sealed) == ("ok", "completed")
    assert work.one("results", [sealed.job_id]).result == "whole"

    assert work.verb("fail", failed, "Broken", "it", retryable=False) == ("ok", "failed")
    answer = operate.one("retry", failed.job_id)
    assert (answer.verdict, answer.status) == ("ok", "queued")
    assert work.verb("release", given_back, False) == ("ok", "queued")

    answer = operate.one("cancel", cancelled.job_id)
    assert (answer.verdict, answer.status) == ("ok", "running")
    assert work.value("cancel_requested", cancelled.job_id) is True
    assert work.verb("acknowledge_cancel", cancelled) == ("ok", "cancelled")

    verbs = ["complete", "fail", "release"]
    settled = work.rows("settle", worker_id, [b.job_id for b in batch], [b.token for b in batch],
                        verbs)  # fmt: skip
    assert {(row.verdict, row.status) for row in settled} == {("ok", "completed"), ("ok", "queued")}


def _keep(work: Caller, operate: Caller, queue: str) -> None:
    assert operate.one("pause", queue).verdict == "ok"
    assert work.rows("claim", [queue], "ada") == []
    assert operate.one("resume", queue).verdict == "ok"
    for caller in (work, operate):
        caller.rows("maintain")
