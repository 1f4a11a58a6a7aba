"""The verbs that need READ COMMITTED, and those that work in any transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.postgres.races import (
    LONGEST_WAIT,
    MILLISECOND,
    SECOND,
    Connection,
    SteppedClock,
    call,
    enqueued,
    job,
    leased,
    one,
    owner,
    started,
    wait_until_blocked,
)

Session = Callable[[], Connection]
Verb = Callable[[Connection, Any], Any]

LEVELS = pytest.mark.parametrize("level", ["repeatable read", "serializable"])


@pytest.fixture
def caller(session: Session) -> Connection:
    return session()


@pytest.fixture
def rival(session: Session) -> Connection:
    return session()


def begin(connection: Connection, level: str) -> None:
    """Begin, and take the snapshot that the transaction keeps."""
    connection.execute(f"begin isolation level {level}; select 1".encode())


CHOOSING: dict[str, Verb] = {
    "claim": lambda c, lease: call(c, "claim", ["q"], "bob"),
    "claim_job": lambda c, lease: call(c, "claim_job", lease.job_id, "bob"),
    "renew": lambda c, lease: call(c, "renew", "ada", [lease.job_id], [lease.token]),
    "reclaim": lambda c, lease: call(c, "reclaim", *owner(lease), lease.lease_expires_at, "bob"),
    "settle": lambda c, lease: call(
        c, "settle", "ada", [lease.job_id], [lease.token], ["complete"]
    ),
    "sweep": lambda c, lease: call(c, "sweep", "bob"),
}


def guard(connection: Connection, lease: Any) -> str:
    call(connection, "guard", *owner(lease), lease_for=60 * SECOND)
    return "ok"


SINGLE: dict[str, Verb] = {
    "guard": guard,
    "update_owned": lambda c, lease: one(c, "update_owned", *owner(lease), Jsonb(1)).verdict,
    "seal": lambda c, lease: one(c, "seal", *owner(lease)).verdict,
    "complete": lambda c, lease: one(c, "complete", *owner(lease)).verdict,
    "fail": lambda c, lease: one(c, "fail", *owner(lease), "Broken").verdict,
    "release": lambda c, lease: one(c, "release", *owner(lease), True).verdict,
    "cancel": lambda c, lease: one(c, "cancel", lease.job_id).verdict,
}

SEEN: dict[str, Callable[[Any], bool]] = {
    "guard": lambda row: row.lease_expires_at > row.claimed_at + 50 * SECOND,
    "update_owned": lambda row: row.progress == 1,
    "seal": lambda row: row.sealed_at is not None,
    "complete": lambda row: row.status == "completed",
    "fail": lambda row: row.status == "queued" and row.last_error == "Broken",
    "release": lambda row: row.status == "queued",
    "cancel": lambda row: row.cancel_requested,
}
"""What the verbs of SINGLE leave behind."""

READING: dict[str, Verb] = {
    "next_eligible_job_id": lambda c, lease: one(c, "next_eligible_job_id", ["q"])[0],
    "next_due": lambda c, lease: one(c, "next_due", ["q"])[0],
    "lapsed": lambda c, lease: call(c, "lapsed"),
    "held": lambda c, lease: len(call(c, "held", "ada")),
    "cancel_requested": lambda c, lease: one(c, "cancel_requested", lease.job_id)[0],
}


@LEVELS
def test_a_verb_that_chooses_among_rows_refuses_an_old_snapshot_and_changes_nothing(
    caller: Connection, rival: Connection, clock: SteppedClock, level: str
) -> None:
    lease = leased(rival, lease_for=SECOND)
    clock.advance(2 * SECOND)
    enqueued(rival)
    before = rival.execute("select * from tenure.job order by id").fetchall()

    for verb, ask in CHOOSING.items():
        begin(caller, level)
        with pytest.raises(psycopg.Error, match=f"^{verb} needs READ COMMITTED") as refused:
            ask(caller, lease)
        caller.execute("rollback")

        assert refused.value.sqlstate == "TN006"
        assert refused.value.diag.message_hint
    assert rival.execute("select * from tenure.job order by id").fetchall() == before


def test_a_verb_that_chooses_among_rows_works_in_a_transaction_of_read_committed(
    caller: Connection, rival: Connection, clock: SteppedClock
) -> None:
    lapsed = leased(rival, lease_for=SECOND)
    clock.advance(2 * SECOND)
    waiting = enqueued(rival)

    for verb, ask in CHOOSING.items():
        begin(caller, "read committed")
        lease = lapsed._replace(job_id=waiting) if verb == "claim_job" else lapsed
        assert len(ask(caller, lease)) == 1, verb
        caller.execute("rollback")


@LEVELS
def test_a_verb_about_one_job_works_under_any_isolation(
    caller: Connection, rival: Connection, level: str
) -> None:
    for verb, ask in SINGLE.items():
        lease = leased(rival)

        begin(caller, level)
        answer = ask(caller, lease)
        caller.execute("commit")

        assert (verb, answer) == (verb, "ok")
        assert SEEN[verb](job(rival, lease.job_id)), verb


@LEVELS
def test_a_cancellation_is_acknowledged_under_any_isolation(
    caller: Connection, rival: Connection, level: str
) -> None:
    lease = leased(rival)
    assert one(rival, "cancel", lease.job_id).verdict == "ok"

    begin(caller, level)
    answer = one(caller, "acknowledge_cancel", *owner(lease))
    caller.execute("commit")

    assert (answer.verdict, answer.status) == ("ok", "cancelled")
    begin(caller, level)
    assert one(caller, "retry", lease.job_id).verdict == "ok"
    caller.execute("commit")
    assert job(rival, lease.job_id).status == "queued"


@LEVELS
def test_looking_works_under_any_isolation(
    caller: Connection, rival: Connection, level: str
) -> None:
    lease = leased(rival)
    enqueued(rival)
    expected = {verb: ask(rival, lease) for verb, ask in READING.items()}

    begin(caller, level)
    assert {verb: ask(caller, lease) for verb, ask in READING.items()} == expected
    caller.execute("commit")


@LEVELS
def test_jobs_are_enqueued_in_a_transaction_of_any_isolation(
    caller: Connection, rival: Connection, level: str
) -> None:
    begin(caller, level)
    first = enqueued(caller, dedup_key="k")
    again = one(caller, "enqueue", "q", "work", dedup_key="k")
    batch = call(caller, "enqueue_many", Jsonb([{"queue": "q", "kind": "work"}] * 3))
    call(caller, "wake", ["q"])
    assert call(rival, "claim", ["q"], "ada", 10) == []
    caller.execute("commit")

    assert (again.job_id, again.created) == (first, False)
    leases = call(rival, "claim", ["q"], "ada", 10)
    assert [lease.job_id for lease in leases] == [first, *(row.job_id for row in batch)]


CHANGES: dict[str, Verb] = {
    "renewed": lambda c, lease: call(c, "renew", "ada", [lease.job_id], [lease.token], 60 * SECOND),
    "completed": lambda c, lease: call(c, "complete", *owner(lease)),
    "given back": lambda c, lease: call(c, "release", *owner(lease), True),
}


def acknowledge(connection: Connection, lease: Any) -> str:
    return str(one(connection, "acknowledge_cancel", *owner(lease)).verdict)


@LEVELS
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_the_transaction_cannot_see_is_a_conflict_and_not_a_loss(
    caller: Connection, rival: Connection, level: str, change: str
) -> None:
    for ask in (*SINGLE.values(), acknowledge):
        lease = leased(rival)
        begin(caller, level)
        CHANGES[change](rival, lease)

        with pytest.raises(psycopg.errors.SerializationFailure, match="could not serialize"):
            ask(caller, lease)
        caller.execute("rollback")


def enqueue(connection: Connection) -> None:
    enqueued(connection, dedup_key="k")


def enqueue_many(connection: Connection) -> None:
    call(connection, "enqueue_many", Jsonb([{"queue": "q", "kind": "work", "dedup_key": "k"}]))


@LEVELS
def test_a_key_taken_by_a_job_that_the_transaction_cannot_see_is_a_conflict(
    caller: Connection, rival: Connection, level: str
) -> None:
    for make in (enqueue, enqueue_many):
        begin(caller, level)
        enqueue(rival)

        with pytest.raises(psycopg.errors.SerializationFailure):
            make(caller)
        caller.execute("rollback")
        rival.execute("delete from tenure.job")


@LEVELS
def test_a_retry_of_a_job_that_was_retried_meanwhile_is_a_conflict(
    caller: Connection, rival: Connection, level: str
) -> None:
    job_id = enqueued(rival)
    one(rival, "cancel", job_id)
    begin(caller, level)
    assert one(rival, "retry", job_id).verdict == "ok"

    with pytest.raises(psycopg.errors.SerializationFailure):
        one(caller, "retry", job_id)
    caller.execute("rollback")


@LEVELS
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_guard_that_waited_is_a_conflict_only_when_the_other_committed(
    caller: Connection, rival: Connection, watcher: Connection, level: str, end: str
) -> None:
    lease = leased(rival)
    rival.execute("begin")
    CHANGES["renewed"](rival, lease)
    begin(caller, level)

    waiting = started(lambda: guard(caller, lease))
    wait_until_blocked(watcher, caller, by=rival)
    rival.execute(end)

    if end == "commit":
        with pytest.raises(psycopg.errors.SerializationFailure):
            waiting.result(LONGEST_WAIT)
    else:
        waiting.result(LONGEST_WAIT)
    caller.execute("rollback")


@LEVELS
def test_a_job_held_by_another_transaction_is_deferred_and_no_conflict(
    caller: Connection, rival: Connection, level: str
) -> None:
    lease = leased(rival)
    rival.execute("begin")
    call(rival, "guard", *owner(lease))
    begin(caller, level)

    for verb in ("update_owned", "seal", "complete", "fail", "release"):
        assert SINGLE[verb](caller, lease) == "deferred"
    caller.execute("commit")
    rival.execute("rollback")


@LEVELS
def test_a_guarded_transaction_that_completes_last_is_kept_or_fails_as_one(
    caller: Connection, rival: Connection, clock: SteppedClock, level: str
) -> None:
    lease = leased(rival, lease_for=500 * MILLISECOND)
    clock.advance(SECOND)
    rival.execute("create table effect (done bool)")

    begin(caller, level)
    call(caller, "guard", *owner(lease))
    caller.execute("insert into effect values (true)")
    assert call(rival, "sweep", "bob") == []
    assert one(caller, "complete", *owner(lease)).verdict == "ok"
    caller.execute("commit")

    assert job(rival, lease.job_id).status == "completed"
    assert rival.execute("select * from effect").fetchall() == [(True,)]
