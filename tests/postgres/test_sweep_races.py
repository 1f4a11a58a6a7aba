"""A sweep or a reclaim, and whoever else decides about a lapsed lease at the same time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from threading import Barrier
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.postgres.races import (
    LONGEST_WAIT,
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
from tests.postgres.windows import Window

Session = Callable[[], Connection]
Verb = Callable[[Connection, Any], Any]

ENDS = pytest.mark.parametrize("end", ["commit", "rollback"])


@pytest.fixture
def ada(session: Session) -> Connection:
    """The session of the lapsed lease's owner."""
    return session()


@pytest.fixture
def broom(session: Session) -> Connection:
    """The session of whoever decides about lapsed leases."""
    return session()


def lapsed(connection: Connection, clock: SteppedClock, **options: Any) -> Any:
    lease = leased(connection, lease_for=SECOND, **options)
    clock.advance(2 * SECOND)
    return lease


def sweep(connection: Connection, limit: int = 100) -> dict[int, tuple[str, str]]:
    """What became of each lapsed lease."""
    rows = call(connection, "sweep", "broom", limit)
    assert len({row.job_id for row in rows}) == len(rows)
    return {row.job_id: (row.outcome, row.status) for row in rows}


def whole_row(connection: Connection, job_id: int) -> Any:
    """Everything that is stored about a job, wherever it is."""
    return connection.execute(
        """
        select to_jsonb(j) as stored from tenure.job as j where j.id = %(id)s
        union all
        select to_jsonb(h) from tenure.job_history as h where h.id = %(id)s
        union all
        select to_jsonb(a) from tenure.attempt as a where a.job_id = %(id)s
        """,
        {"id": job_id},
    ).fetchall()


def complete(connection: Connection, lease: Any) -> Any:
    return one(connection, "complete", *owner(lease), Jsonb("done"))


def fail(connection: Connection, lease: Any) -> Any:
    return one(connection, "fail", *owner(lease), "Broken", delay=timedelta(0))


def renew(connection: Connection, lease: Any) -> Any:
    return one(connection, "renew", lease.worker_id, [lease.job_id], [lease.token])


def cancel(connection: Connection, lease: Any) -> Any:
    return one(connection, "cancel", lease.job_id)


def reclaim(connection: Connection, lease: Any) -> Any:
    return one(connection, "reclaim", *owner(lease), lease.lease_expires_at, "bob")


VERBS: dict[str, tuple[Verb, tuple[str, str] | None]] = {
    "renew": (renew, None),
    "complete": (complete, None),
    "fail": (fail, None),
    "release": (lambda c, lease: one(c, "release", *owner(lease), False), None),
    "reclaim": (reclaim, None),
    "update_owned": (
        lambda c, lease: one(c, "update_owned", *owner(lease), Jsonb(1)),
        ("lost", "queued"),
    ),
    "seal": (lambda c, lease: one(c, "seal", *owner(lease)), ("healed", "completed")),
    "cancel": (cancel, ("cancelled", "cancelled")),
}
"""What may be in progress when a sweep comes by, and what the sweep after it decides."""


@ENDS
@pytest.mark.parametrize("verb", VERBS)
def test_a_sweep_passes_over_a_job_that_somebody_is_deciding_about(
    ada: Connection, broom: Connection, clock: SteppedClock, verb: str, end: str
) -> None:
    decide, expected = VERBS[verb]
    lease, other = (lapsed(ada, clock) for _ in range(2))
    ada.execute("begin")
    assert decide(ada, lease) is not None

    # It has an answer while the other transaction is open: so it did not wait for its end.
    assert sweep(broom) == {other.job_id: ("lost", "queued")}
    ada.execute(end)

    if end == "rollback":
        expected = ("lost", "queued")
    assert sweep(broom) == ({lease.job_id: expected} if expected else {})


AFTER_A_SWEEP = {
    "renew": ("deferred", "lost", "renewed"),
    "complete": ("deferred", "lost", "ok"),
    "fail": ("deferred", "lost", "ok"),
}
"""The answers during a sweep, after its commit and after its rollback."""


@ENDS
@pytest.mark.parametrize("verb", AFTER_A_SWEEP)
def test_an_owner_does_not_wait_for_a_sweep_and_is_too_late_when_it_commits(
    ada: Connection, broom: Connection, clock: SteppedClock, verb: str, end: str
) -> None:
    during, after_commit, after_rollback = AFTER_A_SWEEP[verb]
    lease = lapsed(ada, clock)
    broom.execute("begin")
    assert sweep(broom) == {lease.job_id: ("lost", "queued")}

    # The third column is the outcome or the verdict.
    assert VERBS[verb][0](ada, lease)[2] == during
    broom.execute(end)

    answer = VERBS[verb][0](ada, lease)[2]
    assert answer == (after_commit if end == "commit" else after_rollback)


@ENDS
def test_a_cancel_waits_for_a_sweep_and_is_accepted_either_way(
    ada: Connection, broom: Connection, watcher: Connection, clock: SteppedClock, end: str
) -> None:
    lease = lapsed(ada, clock)
    broom.execute("begin")
    sweep(broom)

    asked = started(lambda: cancel(ada, lease))
    wait_until_blocked(watcher, ada, by=broom)
    broom.execute(end)

    answer = asked.result(LONGEST_WAIT)
    after = "cancelled" if end == "commit" else "running"
    assert (answer.verdict, answer.status) == ("ok", after)
    assert sweep(broom) == ({} if end == "commit" else {lease.job_id: ("cancelled", "cancelled")})


def claimed_afresh(connection: Connection, lease: Any) -> None:
    assert one(connection, "release", *owner(lease), True).verdict == "ok"
    assert one(connection, "claim_job", lease.job_id, "bob") is not None


CHANGES: dict[str, Verb] = {
    "completed": complete,
    "claimed afresh": claimed_afresh,
    "given back": lambda c, lease: one(c, "release", *owner(lease), True),
    "renewed": renew,
    "reclaimed": reclaim,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_sweep_leaves_alone_what_changed_after_it_saw_it_and_decides_the_rest(
    ada: Connection, broom: Connection, session: Session, clock: SteppedClock, change: str
) -> None:
    """O01."""
    first, lease, last = (lapsed(ada, clock) for _ in range(3))
    window = Window(session(), "sweep_jobs", "j.lease_expires_at <= v_now")

    with window.open(to=broom):
        sweeping = started(lambda: sweep(broom))
        wait_until_blocked(ada, broom, by=window.keeper)
        CHANGES[change](ada, lease)
        stored = whole_row(ada, lease.job_id)

    assert sweeping.result(LONGEST_WAIT) == {
        first.job_id: ("lost", "queued"),
        last.job_id: ("lost", "queued"),
    }
    assert whole_row(ada, lease.job_id) == stored


@pytest.mark.parametrize("change", CHANGES)
def test_a_reclaim_gets_nothing_when_the_lease_changed_after_it_saw_it(
    ada: Connection, broom: Connection, session: Session, clock: SteppedClock, change: str
) -> None:
    """O01."""
    lease = lapsed(ada, clock)
    window = Window(session(), "reclaim", "j.lease_expires_at <= v_now")

    with window.open(to=broom):
        taking = started(lambda: reclaim(broom, lease))
        wait_until_blocked(ada, broom, by=window.keeper)
        CHANGES[change](ada, lease)
        stored = whole_row(ada, lease.job_id)

    assert taking.result(LONGEST_WAIT) is None
    assert whole_row(ada, lease.job_id) == stored


def test_sweeps_together_share_the_leases_without_a_double(
    session: Session, clock: SteppedClock
) -> None:
    sessions = [session() for _ in range(4)]
    leases = [leased(sessions[0], lease_for=SECOND) for _ in range(120)]
    clock.advance(2 * SECOND)
    together = Barrier(len(sessions))

    def race(connection: Connection) -> list[int]:
        together.wait(LONGEST_WAIT)
        swept: list[int] = []
        while some := sweep(connection, 7):
            assert len(some) <= 7
            swept += some
        return swept

    runs = [started(partial(race, connection)) for connection in sessions]
    swept = [job_id for run in runs for job_id in run.result(LONGEST_WAIT)]

    assert sorted(swept) == [lease.job_id for lease in leases]
    noted = sessions[0].execute("select job_id, token from tenure.attempts order by 1").fetchall()
    assert noted == [(lease.job_id, lease.token) for lease in leases]


def spoil(connection: Connection, *leases: Any) -> None:
    """Make rows that no statement can change or delete."""
    ids = ", ".join(str(lease.job_id) for lease in leases)
    connection.execute(
        f"""
        create function tenure.spoiled() returns trigger language plpgsql as
          $$ begin raise exception 'this row is spoiled'; end $$;
        create trigger spoiled before update or delete on tenure.job
          for each row when (old.id in ({ids})) execute function tenure.spoiled();
        """.encode()
    )


@pytest.mark.parametrize("sealed", [False, True], ids=["to be queued", "to be healed"])
def test_a_row_that_cannot_be_decided_never_fails_the_rest_and_is_named(
    ada: Connection, broom: Connection, clock: SteppedClock, sealed: bool
) -> None:
    leases = [lapsed(ada, clock) for _ in range(4)]
    bad = leases.pop(1)
    if sealed:
        one(ada, "seal", *owner(bad))
    spoil(ada, bad)
    stored = whole_row(ada, bad.job_id)
    warnings: list[str | None] = []
    broom.add_notice_handler(lambda notice: warnings.append(notice.message_primary))

    assert sweep(broom) == {lease.job_id: ("lost", "queued") for lease in leases}

    assert warnings == [f"sweep: job {bad.job_id} stays as it is: this row is spoiled"]
    assert whole_row(ada, bad.job_id) == stored
    assert sweep(broom) == {}


def test_rows_that_cannot_be_decided_do_not_use_the_limit_up(
    ada: Connection, broom: Connection, clock: SteppedClock
) -> None:
    leases = [lapsed(ada, clock) for _ in range(6)]
    spoil(ada, *leases[:3])

    assert list(sweep(broom, 2)) == [lease.job_id for lease in leases[3:5]]
    assert list(sweep(broom, 2)) == [leases[5].job_id]


def test_a_batch_of_all_branches_ends_each_row_once_and_exactly_as_decided(
    ada: Connection, broom: Connection, clock: SteppedClock
) -> None:
    """No row is updated and deleted in one statement: the second would be skipped silently."""
    expected: dict[int, tuple[str, str]] = {}
    for _ in range(3):
        for sealed, cancelled, last, slow in (
            (True, False, False, False),
            (True, False, True, True),
            (False, True, False, False),
            (False, True, True, True),
            (False, False, True, False),
            (False, False, True, True),
            (False, False, False, False),
            (False, False, False, True),
        ):
            lease = leased(
                ada,
                lease_for=SECOND,
                max_attempts=1 if last else 5,
                timeout=SECOND if slow else None,
            )
            if sealed:
                one(ada, "seal", *owner(lease), Jsonb("sealed"))
            if cancelled:
                cancel(ada, lease)
            lost = "timed out" if slow else "lost"
            expected[lease.job_id] = (
                ("healed", "completed")
                if sealed
                else ("cancelled", "cancelled")
                if cancelled
                else (lost, "failed" if last else "queued")
            )
        ids = [enqueued(ada) for _ in range(4)]
        ada.execute("update tenure.job set token_limit = 1 where id = any (%s)", [ids[:2]])
        batch = call(ada, "claim", ["q"], "ada", 4, SECOND)
        assert [lease.job_id for lease in batch] == ids
        expected |= dict.fromkeys(ids[:2], ("lost", "failed"))
        expected |= dict.fromkeys(ids[2:], ("lost", "queued"))
    clock.advance(2 * SECOND)

    assert sweep(broom) == expected

    live = ada.execute("select id, token from tenure.job where status = 'queued'").fetchall()
    assert dict(live) == {i: 2 for i, (_, status) in expected.items() if status == "queued"}
    ended = ada.execute("select id, status::text, token from tenure.job_history").fetchall()
    assert len(live) + len(ended) == len(expected)
    assert {(i, status, token) for i, status, token in ended} == {
        (i, status, 2) for i, (_, status) in expected.items() if status != "queued"
    }
    noted = ada.execute("select job_id, token, verb, outcome from tenure.attempts").fetchall()
    assert set(noted) == {(i, 1, "sweep", outcome) for i, (outcome, _) in expected.items()}
    assert len(noted) == len(expected)


LATE: dict[str, Verb] = {
    "complete": complete,
    "fail": fail,
    "release": lambda c, lease: one(c, "release", *owner(lease), False),
    "seal": lambda c, lease: one(c, "seal", *owner(lease)),
    "acknowledge_cancel": lambda c, lease: one(c, "acknowledge_cancel", *owner(lease)),
    "update_owned": lambda c, lease: one(c, "update_owned", *owner(lease), Jsonb(1)),
    "renew": renew,
    "settle": lambda c, lease: one(
        c, "settle", lease.worker_id, [lease.job_id], [lease.token], ["release"]
    ),
}


def all_refused(connection: Connection, lease: Any) -> None:
    """Every verb under this lease is lost and changes nothing."""
    stored = whole_row(connection, lease.job_id)
    for verb, late in LATE.items():
        assert (verb, late(connection, lease)[2]) == (verb, "lost")
    with pytest.raises(psycopg.Error) as refused:
        call(connection, "guard", *owner(lease))
    assert refused.value.sqlstate == "TN001"
    assert reclaim(connection, lease) is None
    assert whole_row(connection, lease.job_id) == stored


def test_a_late_worker_undoes_nothing_and_wakes_nobody(
    ada: Connection, broom: Connection, session: Session, clock: SteppedClock
) -> None:
    """O02."""
    first = leased(ada, max_attempts=3)
    assert fail(ada, first).status == "queued"
    late = one(ada, "claim_job", first.job_id, "ada", SECOND)
    clock.advance(2 * SECOND)
    assert sweep(broom) == {late.job_id: ("lost", "queued")}
    clock.advance(60 * SECOND)
    last = one(broom, "claim_job", first.job_id, "bob")
    assert (last.token, last.attempt) == (4, 3)
    sleeper = session()
    sleeper.execute(f"listen {one(sleeper, 'channel')[0]}".encode())
    assert one(sleeper, "sleep_begin", ["q"])[0] is not None

    all_refused(ada, late)
    assert fail(broom, last).status == "failed"
    all_refused(ada, late)

    assert job(ada, first.job_id).status == "failed"
    sleeper.execute("select 1")
    assert list(sleeper.notifies(timeout=0)) == []


def test_a_worker_that_has_the_job_again_is_refused_under_its_former_lease(
    ada: Connection, broom: Connection, clock: SteppedClock
) -> None:
    """O03."""
    former = lapsed(ada, clock)
    sweep(broom)
    clock.advance(60 * SECOND)
    present = one(ada, "claim_job", former.job_id, former.worker_id)
    assert (present.worker_id, present.token) == (former.worker_id, former.token + 2)

    all_refused(ada, former)

    assert complete(ada, present).verdict == "ok"
    all_refused(ada, former)
