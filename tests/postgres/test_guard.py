"""A guarded transaction and whoever else wants its job meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
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
Rival = Callable[[Connection, Any], Any]

ENDS = pytest.mark.parametrize("end", ["commit", "rollback"])


@pytest.fixture
def handler(session: Session) -> Connection:
    return session()


@pytest.fixture
def rival(session: Session) -> Connection:
    return session()


@pytest.fixture
def lapsed(rival: Connection, clock: SteppedClock) -> Any:
    """A lease past its time that nobody took over: still its owner's, and open to rivals."""
    lease = leased(rival, lease_for=SECOND)
    clock.advance(2 * SECOND)
    return lease


@contextmanager
def refused(sqlstate: str) -> Iterator[None]:
    with pytest.raises(psycopg.Error) as caught:
        yield
    assert caught.value.sqlstate == sqlstate


def guarded(connection: Connection, lease: Any, **options: Any) -> None:
    connection.execute("begin")
    call(connection, "guard", *owner(lease), **options)


def reclaim(connection: Connection, lease: Any) -> Any:
    return one(connection, "reclaim", *owner(lease), lease.lease_expires_at, "bob")


def sweep(connection: Connection, lease: Any) -> Any:
    return one(connection, "sweep", "bob")


def cancel(connection: Connection, lease: Any) -> Any:
    return one(connection, "cancel", lease.job_id)


def settle(connection: Connection, verb: str, *leases: Any) -> dict[int, str]:
    return {
        row.job_id: row.verdict
        for row in call(
            connection,
            "settle",
            leases[0].worker_id,
            [lease.job_id for lease in leases],
            [lease.token for lease in leases],
            [verb] * len(leases),
        )
    }


@ENDS
@pytest.mark.parametrize("take", [reclaim, sweep])
def test_whoever_would_take_a_guarded_job_over_gets_nothing_at_once(
    handler: Connection, rival: Connection, lapsed: Any, take: Rival, end: str
) -> None:
    guarded(handler, lapsed)

    assert take(rival, lapsed) is None
    handler.execute(end)

    # The guard extended the lease, if it was committed.
    assert (take(rival, lapsed) is None) == (end == "commit")


@ENDS
def test_a_cancel_waits_for_a_guarded_transaction(
    handler: Connection, rival: Connection, watcher: Connection, lapsed: Any, end: str
) -> None:
    guarded(handler, lapsed)

    asked = started(lambda: cancel(rival, lapsed))
    wait_until_blocked(watcher, rival, by=handler)
    handler.execute(end)

    answer = asked.result(LONGEST_WAIT)
    assert (answer.verdict, answer.status) == ("ok", "running")


def test_a_cancel_comes_too_late_for_a_job_that_was_completed_under_a_guard(
    handler: Connection, rival: Connection, watcher: Connection, lapsed: Any
) -> None:
    guarded(handler, lapsed)
    assert one(handler, "complete", *owner(lapsed)).verdict == "ok"

    asked = started(lambda: cancel(rival, lapsed))
    wait_until_blocked(watcher, rival, by=handler)
    handler.execute("commit")

    answer = asked.result(LONGEST_WAIT)
    assert (answer.verdict, answer.status) == ("refused", "completed")


@ENDS
def test_a_second_guard_waits_for_the_first(
    handler: Connection, rival: Connection, watcher: Connection, lapsed: Any, end: str
) -> None:
    guarded(handler, lapsed)

    second = started(lambda: guarded(rival, lapsed))
    wait_until_blocked(watcher, rival, by=handler)
    handler.execute(end)

    second.result(LONGEST_WAIT)
    rival.execute("rollback")


@ENDS
def test_a_second_guard_is_refused_when_the_first_completed_the_job(
    handler: Connection, rival: Connection, watcher: Connection, lapsed: Any, end: str
) -> None:
    guarded(handler, lapsed)
    assert one(handler, "complete", *owner(lapsed)).verdict == "ok"

    second = started(lambda: guarded(rival, lapsed))
    wait_until_blocked(watcher, rival, by=handler)
    handler.execute(end)

    if end == "commit":
        with refused("TN001"):
            second.result(LONGEST_WAIT)
    else:
        second.result(LONGEST_WAIT)
    rival.execute("rollback")


@ENDS
@pytest.mark.parametrize(
    ("take", "sqlstate"), [(reclaim, "TN001"), (sweep, "TN001"), (cancel, "TN002")]
)
def test_a_guard_waits_for_whoever_is_taking_its_job_and_is_refused_then(
    handler: Connection,
    rival: Connection,
    watcher: Connection,
    lapsed: Any,
    take: Rival,
    sqlstate: str,
    end: str,
) -> None:
    rival.execute("begin")
    assert take(rival, lapsed) is not None

    guard = started(lambda: guarded(handler, lapsed))
    wait_until_blocked(watcher, handler, by=rival)
    rival.execute(end)

    if end == "commit":
        with refused(sqlstate):
            guard.result(LONGEST_WAIT)
    else:
        guard.result(LONGEST_WAIT)
    handler.execute("rollback")


def test_a_guard_may_pass_over_the_cancellation_it_waited_for(
    handler: Connection, rival: Connection, watcher: Connection, lapsed: Any
) -> None:
    rival.execute("begin")
    assert cancel(rival, lapsed).verdict == "ok"

    guard = started(lambda: guarded(handler, lapsed, require_cancel_not_requested=False))
    wait_until_blocked(watcher, handler, by=rival)
    rival.execute("commit")

    guard.result(LONGEST_WAIT)
    handler.execute("rollback")


def test_a_guard_gives_up_after_two_seconds(
    handler: Connection, rival: Connection, lapsed: Any
) -> None:
    guarded(rival, lapsed)

    with refused("TN005"):
        guarded(handler, lapsed)
    handler.execute("rollback")
    rival.execute("commit")
    guarded(handler, lapsed)
    handler.execute("rollback")


def test_a_cancel_gives_up_after_two_seconds_and_was_not_accepted(
    handler: Connection, rival: Connection, lapsed: Any
) -> None:
    guarded(handler, lapsed)

    answer = cancel(rival, lapsed)
    handler.execute("commit")

    assert (answer.verdict, answer.holder_pid) == ("deferred", handler.info.backend_pid)
    assert not job(rival, lapsed.job_id).cancel_requested


OTHER_VERBS: dict[str, Callable[[Connection, Any], str]] = {
    "update_owned": lambda c, lease: (
        one(c, "update_owned", *owner(lease), progress=Jsonb(1)).verdict
    ),
    "seal": lambda c, lease: one(c, "seal", *owner(lease)).verdict,
    "complete": lambda c, lease: one(c, "complete", *owner(lease)).verdict,
    "fail": lambda c, lease: one(c, "fail", *owner(lease), "Broken").verdict,
    "release": lambda c, lease: one(c, "release", *owner(lease), True).verdict,
    "acknowledge_cancel": lambda c, lease: one(c, "acknowledge_cancel", *owner(lease)).verdict,
    "settle": lambda c, lease: settle(c, "complete", lease)[lease.job_id],
    "renew": lambda c, lease: one(c, "renew", "ada", [lease.job_id], [lease.token]).outcome,
}


@ENDS
@pytest.mark.parametrize("verb", OTHER_VERBS)
def test_a_verb_of_ones_own_on_another_connection_is_deferred_at_once(
    handler: Connection, rival: Connection, lapsed: Any, verb: str, end: str
) -> None:
    guarded(handler, lapsed)

    # It has an answer while the guard is open: so it did not wait for its end.
    assert OTHER_VERBS[verb](rival, lapsed) == "deferred"
    handler.execute(end)
    assert OTHER_VERBS[verb](rival, lapsed) in {"ok", "renewed", "not_requested"}


def test_a_deferred_renewal_shows_the_present_end_of_the_lease(
    handler: Connection, rival: Connection, lapsed: Any
) -> None:
    guarded(handler, lapsed)

    renewal = one(rival, "renew", "ada", [lapsed.job_id], [lapsed.token])
    handler.execute("commit")

    assert renewal.lease_expires_at == lapsed.lease_expires_at


def test_a_savepoint_before_the_guard_lets_go_of_the_job_when_it_is_rolled_back(
    handler: Connection, rival: Connection, lapsed: Any
) -> None:
    handler.execute("begin; savepoint before")
    call(handler, "guard", *owner(lapsed))
    assert reclaim(rival, lapsed) is None

    handler.execute("rollback to savepoint before")

    assert reclaim(rival, lapsed) is not None
    handler.execute("rollback")


def test_a_guard_that_settles_another_job_never_deadlocks_with_a_batch(
    handler: Connection, rival: Connection, clock: SteppedClock
) -> None:
    first, second, third = (leased(rival) for _ in range(3))

    guarded(handler, second)
    rival.execute("begin")
    batch = settle(rival, "complete", third, second, first)
    other = one(handler, "complete", *owner(first)).verdict
    own = one(handler, "complete", *owner(second)).verdict
    handler.execute("commit")
    rival.execute("commit")

    assert batch == {first.job_id: "ok", second.job_id: "deferred", third.job_id: "ok"}
    assert (other, own) == ("deferred", "ok")
    assert {job(rival, lease.job_id).status for lease in (first, second, third)} == {"completed"}


def test_no_lease_changes_hands_in_a_guarded_transaction_that_settles_last(
    handler: Connection, rival: Connection, lapsed: Any
) -> None:
    guarded(handler, lapsed)
    handler.execute("create table effect as select 1 as done")
    assert (reclaim(rival, lapsed), sweep(rival, lapsed)) == (None, None)
    assert one(handler, "complete", *owner(lapsed)).verdict == "ok"
    handler.execute("commit")

    assert rival.execute("select done from effect").fetchall() == [(1,)]
    assert job(rival, lapsed.job_id).token == lapsed.token


def idle_limit(connection: Connection) -> str:
    row = connection.execute("show idle_in_transaction_session_timeout").fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.parametrize(
    ("own", "inside"), [("0", "30s"), ("5s", "5s"), ("1h", "30s"), ("30s", "30s")]
)
def test_a_guarded_transaction_may_idle_no_longer_than_its_lease(
    handler: Connection, lapsed: Any, own: str, inside: str
) -> None:
    handler.execute(f"set idle_in_transaction_session_timeout = '{own}'")

    guarded(handler, lapsed)

    assert idle_limit(handler) == inside
    handler.execute("commit")
    assert idle_limit(handler) == own


def test_a_guard_whose_client_vanished_frees_the_job(
    handler: Connection, rival: Connection, watcher: Connection, lapsed: Any
) -> None:
    guarded(handler, lapsed, lease_for=500 * MILLISECOND)

    second = started(lambda: guarded(rival, lapsed))
    wait_until_blocked(watcher, rival, by=handler)

    second.result(LONGEST_WAIT)
    rival.execute("rollback")
    with refused("25P03"):
        handler.execute("select 1")


@pytest.mark.parametrize(
    ("lease_for", "timeout", "guard_for", "end"),
    [
        (30 * SECOND, None, 60 * SECOND, 70 * SECOND),
        (30 * SECOND, None, SECOND, 30 * SECOND),
        (30 * SECOND, 45 * SECOND, 60 * SECOND, 45 * SECOND),
        (30 * SECOND, None, 20 * SECOND + 500 * MILLISECOND, 30 * SECOND + 500 * MILLISECOND),
    ],
    ids=["longer", "never shorter", "not past the timeout", "in milliseconds"],
)
def test_a_guard_extends_the_lease(
    handler: Connection,
    clock: SteppedClock,
    lease_for: timedelta,
    timeout: timedelta | None,
    guard_for: timedelta,
    end: timedelta,
) -> None:
    claimed_at = clock.now
    lease = leased(handler, lease_for=lease_for, timeout=timeout)
    clock.advance(10 * SECOND)

    guarded(handler, lease, lease_for=guard_for)
    handler.execute("commit")

    assert job(handler, lease.job_id).lease_expires_at == claimed_at + end


@pytest.mark.parametrize("end", ["completed", "requeued", "unknown"])
def test_a_guard_under_a_token_that_is_not_current_is_refused(
    handler: Connection, rival: Connection, lapsed: Any, end: str
) -> None:
    match end:
        case "completed":
            one(rival, "complete", *owner(lapsed))
        case "requeued":
            one(rival, "release", *owner(lapsed), False)
        case "unknown":
            lapsed = lapsed._replace(job_id=enqueued(rival) + 1)

    with refused("TN001"):
        guarded(handler, lapsed)
    handler.execute("rollback")


def test_a_guard_fences_on_the_token_and_on_the_name(handler: Connection, lapsed: Any) -> None:
    for wrong in (lapsed._replace(token=lapsed.token + 1), lapsed._replace(worker_id="bob")):
        with refused("TN001"):
            guarded(handler, wrong)
        handler.execute("rollback")
