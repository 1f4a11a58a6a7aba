"""Who is woken by whom: one notification when somebody sleeps, none when nobody does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.postgres.ear import Ear
from tests.postgres.floors import WRITERS
from tests.postgres.races import (
    MILLISECOND,
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

Session = Callable[[], Connection]
HOUR = timedelta(hours=1)


@pytest.fixture
def worker(session: Session, clock: SteppedClock) -> Connection:
    return session()


@pytest.fixture
def sleeper(session: Session) -> Connection:
    return session()


@pytest.fixture
def ear(session: Session) -> Ear:
    return Ear(session(), session())


def sleeps(connection: Connection, *queues: str) -> int:
    (horizon,) = one(connection, "sleep_begin", list(queues or ["q"]))
    assert isinstance(horizon, int)
    return horizon


def key(connection: Connection, queue: str = "q") -> str:
    (key,) = one(connection, "queue_key", queue)
    return f"q{key}"


def advisory_locks(connection: Connection) -> int:
    row = connection.execute(
        "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
    ).fetchone()
    assert row is not None
    return int(row[0])


def paused(connection: Connection, clock: SteppedClock) -> None:
    call(connection, "pause", "q")


def resume(connection: Connection, _: Any) -> None:
    assert one(connection, "resume", "q").verdict == "ok"


def straggler(connection: Connection, clock: SteppedClock) -> None:
    call(connection, "worker_seen", "ada", ["q"])
    enqueued(connection)
    clock.advance(2 * MINUTE)
    connection.execute(
        "update tenure.queue set floors = array[11, tenure.microseconds(%s)]", [clock.now]
    )


MAKE_CLAIMABLE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    **{name: (writer.prepare, writer.write) for name, writer in WRITERS.items()},
    "resume": (paused, resume),
    "sweep of a straggler": (straggler, lambda c, _: call(c, "sweep", "ada")),
    "wake": (lambda c, clock: None, lambda c, _: call(c, "wake", ["q"])),
    "try_wake": (lambda c, clock: None, lambda c, _: call(c, "try_wake", ["q"])),
}


@pytest.mark.parametrize("verb", MAKE_CLAIMABLE)
def test_a_sleeper_is_notified_once_by(
    worker: Connection, sleeper: Connection, ear: Ear, clock: SteppedClock, verb: str
) -> None:
    prepare, write = MAKE_CLAIMABLE[verb]
    enqueued(worker, "another queue")

    write(worker, prepare(worker, clock))
    assert ear.heard() == []  # nobody sleeps

    sleeps(sleeper, "another queue")
    write(worker, prepare(worker, clock))
    assert ear.heard() == []

    sleeps(sleeper)
    what = prepare(worker, clock)
    ear.heard()
    write(worker, what)
    assert ear.heard() == [key(worker)]
    assert advisory_locks(worker) == 0


def test_jobs_for_several_queues_wake_each_sleeping_one_once(
    worker: Connection, session: Session, ear: Ear
) -> None:
    sleeps(session(), "one", "two")
    sleeps(session(), "one")
    jobs = [{"queue": queue, "kind": "work"} for queue in ("two", "one", "three", "one")]

    call(worker, "enqueue_many", Jsonb(jobs))

    assert sorted(ear.heard()) == sorted([key(worker, "one"), key(worker, "two")])


def test_one_transaction_at_a_time_is_to_notify_with_its_commit(
    worker: Connection, sleeper: Connection, session: Session, ear: Ear
) -> None:
    sleeps(sleeper, "q", "other")
    second = session()
    with worker.transaction():
        assert one(worker, "try_wake", ["q"]) == (True,)
        assert one(worker, "try_wake", ["other"]) == (True,)
        assert one(second, "try_wake", ["q"]) == (False,)
        assert ear.heard() == []
    assert ear.heard() == [key(worker), key(worker, "other")]

    with worker.transaction(force_rollback=True):
        assert one(worker, "try_wake", ["q"]) == (True,)
    assert ear.heard() == []
    assert one(second, "try_wake", ["q"]) == (True,)
    assert ear.heard() == [key(worker)]


@pytest.mark.parametrize("notify", [True, False])
def test_notify_false_wakes_nobody(
    worker: Connection, sleeper: Connection, ear: Ear, notify: bool
) -> None:
    sleeps(sleeper)

    enqueued(worker, notify=notify)
    call(worker, "enqueue_many", Jsonb([{"queue": "q", "kind": "work"}]), notify)
    call(worker, "enqueue_many", Jsonb([{"queue": "q", "kind": "work", "dedup_key": "k"}]), notify)

    assert ear.heard() == [key(worker)] * (3 if notify else 0)


def test_an_install_that_does_not_notify_wakes_nobody(
    worker: Connection, sleeper: Connection, ear: Ear, clock: SteppedClock
) -> None:
    sleeps(sleeper)
    worker.execute("update tenure.install set notify = false")

    for prepare, write in MAKE_CLAIMABLE.values():
        write(worker, prepare(worker, clock))
    lease = leased(worker)
    assert one(worker, "cancel", lease.job_id).verdict == "ok"

    assert ear.heard() == []


def test_what_makes_nothing_claimable_wakes_nobody(
    worker: Connection, sleeper: Connection, ear: Ear, clock: SteppedClock
) -> None:
    first, second, third = (enqueued(worker, dedup_key=word) for word in ("a", "b", "c"))
    sleeps(sleeper)

    assert not one(worker, "enqueue", "q", "work", dedup_key="a").created
    [lease] = call(worker, "claim", ["q"], "ada")
    assert lease.job_id == first
    one(worker, "renew", "ada", [first], [lease.token], SECOND)
    one(worker, "update_owned", *owner(lease), progress=Jsonb(1))
    clock.advance(2 * SECOND)
    [lapsed] = call(worker, "lapsed")
    lease = one(worker, "reclaim", *owner(lease), lapsed.lease_expires_at, "bob")
    assert one(worker, "seal", *owner(lease)).verdict == "ok"
    assert one(worker, "complete", *owner(lease)).verdict == "ok"
    lease = one(worker, "claim_job", second, "ada")
    assert one(worker, "fail", *owner(lease), "Broken", retryable=False).verdict == "ok"
    assert one(worker, "cancel", third).verdict == "ok"
    call(worker, "worker_seen", "ada", ["q"])
    call(worker, "sweep", "ada")
    call(worker, "pause", "q")

    assert ear.heard() == []


@pytest.mark.parametrize(
    ("away", "woken"),
    [(30 * SECOND - MILLISECOND, True), (30 * SECOND, False), (timedelta(days=1), False)],
)
def test_a_job_due_beyond_the_poll_floor_wakes_nobody(
    worker: Connection,
    sleeper: Connection,
    ear: Ear,
    clock: SteppedClock,
    away: timedelta,
    woken: bool,
) -> None:
    leases = [leased(worker) for _ in range(3)]
    sleeps(sleeper)
    expected = [key(worker)] if woken else []

    enqueued(worker, delay=away)
    assert ear.heard() == expected
    enqueued(worker, run_at=clock.now + away)
    assert ear.heard() == expected
    jobs = [{"queue": "q", "kind": "work", "delay": f"{away / SECOND} seconds"}]
    call(worker, "enqueue_many", Jsonb(jobs))
    assert ear.heard() == expected
    one(worker, "fail", *owner(leases[0]), "Broken", delay=away)
    assert ear.heard() == expected
    one(worker, "release", *owner(leases[1]), True, away)
    assert ear.heard() == expected
    job_ids, tokens = [leases[2].job_id], [leases[2].token]
    call(worker, "settle", "ada", job_ids, tokens, ["fail"], delays=[away])
    assert ear.heard() == expected


def test_a_failure_with_a_long_backoff_wakes_nobody(
    worker: Connection, sleeper: Connection, ear: Ear
) -> None:
    lease = leased(worker, retry_base=MINUTE)
    last = leased(worker, max_attempts=1)
    sleeps(sleeper)

    one(worker, "fail", *owner(lease), "Broken")
    one(worker, "fail", *owner(last), "Broken")

    assert ear.heard() == []


def test_a_cancellation_reaches_whoever_listens(
    worker: Connection, ear: Ear, clock: SteppedClock
) -> None:
    lease, queued = leased(worker), enqueued(worker)

    assert one(worker, "cancel", lease.job_id).verdict == "ok"
    assert ear.heard() == [f"c{lease.job_id}"]
    assert one(worker, "cancel", lease.job_id).verdict == "already"
    assert one(worker, "cancel", queued).verdict == "ok"
    assert ear.heard() == []


def test_a_sleeper_on_many_queues_shows_one_key_for_all(
    worker: Connection, sleeper: Connection, ear: Ear
) -> None:
    sleeps(sleeper, *(f"queue {n}" for n in range(32)))
    assert advisory_locks(sleeper) == 32
    enqueued(worker)
    assert ear.heard() == []

    sleeps(sleeper, *(f"queue {n}" for n in range(33)))
    assert advisory_locks(sleeper) == 1
    enqueued(worker)
    assert ear.heard() == [key(worker)]


@pytest.mark.parametrize("end", ["sleep_end", "sleep_begin elsewhere", "the end of the session"])
def test_a_worker_that_is_awake_again_is_not_notified(
    worker: Connection, sleeper: Connection, ear: Ear, end: str
) -> None:
    sleeps(sleeper, "q", "r")
    match end:
        case "sleep_end":
            call(sleeper, "sleep_end")
            assert advisory_locks(sleeper) == 0
        case "sleep_begin elsewhere":
            sleeps(sleeper, "r")
            assert advisory_locks(sleeper) == 1
        case _:
            sleeper.close()
            worker.execute(
                "select pg_advisory_lock(tenure.install_key(), tenure.queue_key('q'));"
                "select pg_advisory_unlock_all()"
            )

    enqueued(worker)

    assert ear.heard() == []


def test_sleep_end_leaves_other_locks_of_the_session_alone(sleeper: Connection) -> None:
    sleeper.execute("select pg_advisory_lock_shared(1, 2)")
    sleeper.execute("select pg_advisory_lock(tenure.install_key(), 3)")
    sleeps(sleeper)

    call(sleeper, "sleep_end")

    assert advisory_locks(sleeper) == 2


def test_sleep_begin_twice_holds_each_key_once(sleeper: Connection) -> None:
    sleeps(sleeper, "q", "q", "r")
    sleeps(sleeper, "q", "r")
    assert advisory_locks(sleeper) == 2

    call(sleeper, "sleep_end")
    assert advisory_locks(sleeper) == 0


def test_sleep_begin_refuses_a_transaction_that_has_written(sleeper: Connection) -> None:
    sleeper.execute("begin; select pg_current_xact_id()")

    with pytest.raises(psycopg.Error) as caught:
        sleeps(sleeper)

    assert caught.value.sqlstate == "TN003"
    sleeper.execute("rollback")
    assert advisory_locks(sleeper) == 0


def test_sleep_begin_says_so_when_a_key_cannot_be_had(
    worker: Connection, sleeper: Connection
) -> None:
    worker.execute("select pg_advisory_lock(tenure.install_key(), tenure.queue_key('r'))")

    assert one(sleeper, "sleep_begin", ["a", "q", "r"])[0] is None

    assert advisory_locks(sleeper) == 0
    worker.execute("select pg_advisory_unlock_all()")
    sleeps(sleeper, "a", "q", "r")


def test_producers_that_look_at_the_same_instant_still_notify_a_sleeper(
    worker: Connection, session: Session, sleeper: Connection, ear: Ear
) -> None:
    sleeps(sleeper)
    other = session()
    worker.execute("begin")
    enqueued(worker)

    enqueued(other)
    worker.execute("commit")

    assert ear.heard() == [key(worker)] * 2


def test_a_batch_in_which_nothing_is_new_wakes_nobody(
    worker: Connection, sleeper: Connection, ear: Ear
) -> None:
    enqueued(worker, dedup_key="a")
    sleeps(sleeper)

    call(worker, "enqueue_many", Jsonb([{"queue": "q", "kind": "work", "dedup_key": "a"}]))

    assert ear.heard() == []


def test_a_sweep_that_puts_a_job_off_for_long_wakes_nobody(
    worker: Connection, sleeper: Connection, ear: Ear, clock: SteppedClock
) -> None:
    leased(worker, retry_base=2 * HOUR, retry_cap=2 * HOUR)
    clock.advance(MINUTE)
    sleeps(sleeper)

    [swept] = call(worker, "sweep", "ada")

    assert swept.status == "queued"
    assert ear.heard() == []
