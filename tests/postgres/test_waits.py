"""Who is told that a job has ended: whoever waits for it, and nobody when nobody waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.postgres.ear import Ear
from tests.postgres.races import (
    MINUTE,
    SECOND,
    Connection,
    Gate,
    SteppedClock,
    call,
    enqueued,
    leased,
    one,
    owner,
    started,
)
from tests.postgres.test_sleep_gaps import _KEYS_AT_THE_GATE
from tests.postgres.test_wakeups import advisory_locks

Session = Callable[[], Connection]


@pytest.fixture
def worker(session: Session, clock: SteppedClock) -> Connection:
    return session()


@pytest.fixture
def waiter(session: Session) -> Connection:
    return session()


@pytest.fixture
def ear(session: Session) -> Ear:
    return Ear(session(), session())


def waits(connection: Connection, *job_ids: int) -> int:
    (horizon,) = one(connection, "wait_begin", list(job_ids))
    assert isinstance(horizon, int)
    return horizon


def settled(connection: Connection, horizon: int) -> bool:
    return bool(one(connection, "sleep_settled", horizon)[0])


def fails_for_good(worker: Connection, clock: SteppedClock, lease: Any) -> None:
    assert one(worker, "fail", *owner(lease), "Broken", retryable=False).status == "failed"


def is_given_back_at_the_end(worker: Connection, clock: SteppedClock, lease: Any) -> None:
    worker.execute("update tenure.job set attempt = max_attempts where id = %s", [lease.job_id])
    assert one(worker, "release", *owner(lease), True).status == "failed"


def is_cancelled(worker: Connection, clock: SteppedClock, lease: Any) -> None:
    one(worker, "cancel", lease.job_id)
    assert one(worker, "acknowledge_cancel", *owner(lease)).status == "cancelled"


def is_healed(worker: Connection, clock: SteppedClock, lease: Any) -> None:
    one(worker, "seal", *owner(lease))
    worker.execute(
        "update tenure.job set lease_expires_at = tenure.clock() - interval '1 second'"
        " where id = %s",
        [lease.job_id],
    )
    assert one(worker, "sweep", "bob").status == "completed"


def is_cancelled_while_queued(worker: Connection, clock: SteppedClock, lease: Any) -> None:
    one(worker, "release", *owner(lease), False)
    assert one(worker, "cancel", lease.job_id).status == "cancelled"


def completes(worker: Connection, clock: SteppedClock, lease: Any) -> None:
    assert one(worker, "complete", *owner(lease)).verdict == "ok"


def is_settled(worker: Connection, clock: SteppedClock, lease: Any) -> None:
    [answer] = call(worker, "settle", "ada", [lease.job_id], [lease.token], ["complete"])
    assert answer.status == "completed"


ENDS = [
    completes,
    is_settled,
    fails_for_good,
    is_given_back_at_the_end,
    is_cancelled,
    is_cancelled_while_queued,
    is_healed,
]


@pytest.mark.parametrize("end", ENDS)
def test_whoever_waits_is_told_once_when_the_job(
    worker: Connection,
    waiter: Connection,
    ear: Ear,
    clock: SteppedClock,
    end: Callable[[Connection, SteppedClock, Any], None],
) -> None:
    unawaited, other, awaited = (leased(worker) for _ in range(3))
    end(worker, clock, unawaited)
    assert _ends(ear) == []

    waits(waiter, awaited.job_id)
    end(worker, clock, other)
    assert _ends(ear) == []
    end(worker, clock, awaited)
    assert _ends(ear) == [f"d{awaited.job_id}"]

    call(waiter, "sleep_end")
    end(worker, clock, leased(worker))
    assert _ends(ear) == []


def _ends(ear: Ear) -> list[str]:
    return [payload for payload in ear.heard() if payload.startswith("d")]


def test_of_a_batch_only_the_jobs_somebody_waits_for_are_told(
    worker: Connection, waiter: Connection, ear: Ear
) -> None:
    leases = [leased(worker) for _ in range(5)]
    ids, tokens = [lease.job_id for lease in leases], [lease.token for lease in leases]
    waits(waiter, ids[1], ids[3], ids[4])
    verbs = ["complete", "complete", "complete", "fail", "fail"]
    delays = [None, None, None, None, MINUTE]

    call(worker, "settle", "ada", ids, tokens, verbs, delays=delays)

    # The failed ones are queued again: they have not ended.
    assert _ends(ear) == [f"d{ids[1]}"]


def test_what_does_not_end_a_job_tells_nobody(
    worker: Connection, waiter: Connection, ear: Ear, clock: SteppedClock
) -> None:
    lease = leased(worker)
    waits(waiter, lease.job_id)

    one(worker, "fail", *owner(lease), "Broken", delay=0 * SECOND)
    lease = one(worker, "claim_job", lease.job_id, "ada")
    one(worker, "release", *owner(lease), False)
    lease = one(worker, "claim_job", lease.job_id, "ada")
    clock.advance(MINUTE)
    [swept] = call(worker, "sweep", "ada")
    assert swept.status == "queued"
    clock.advance(MINUTE)
    lease = one(worker, "claim_job", lease.job_id, "ada")
    one(worker, "seal", *owner(lease))
    assert one(worker, "complete", lease.job_id, "ada", lease.token + 1).verdict == "lost"

    assert _ends(ear) == []


def test_an_install_that_does_not_notify_tells_nobody(
    worker: Connection, waiter: Connection, ear: Ear
) -> None:
    lease = leased(worker)
    waits(waiter, lease.job_id)
    worker.execute("update tenure.install set notify = false")

    one(worker, "complete", *owner(lease))

    assert ear.heard() == []


def test_a_batch_that_nobody_waits_for_costs_one_test(worker: Connection) -> None:
    leases = [leased(worker) for _ in range(100)]
    worker.execute(_COUNTED)

    call(worker, "settle", "ada", [lease.job_id for lease in leases],
         [lease.token for lease in leases], ["complete"] * 100)  # fmt: skip

    assert one(worker, "tests_made")[0] == 1


_COUNTED = """
create sequence tenure.tests minvalue 0 start 0;
select nextval('tenure.tests');
create function tenure.tests_made() returns bigint language sql
as 'select last_value from tenure.tests';
alter function tenure.somebody_sleeps(integer) rename to somebody_sleeps_in_fact;
create function tenure.somebody_sleeps(p_key integer)
  returns boolean
  language plpgsql
  volatile
  security definer
  set search_path = tenure, pg_temp
as $$
begin
  perform nextval('tests');
  return somebody_sleeps_in_fact(p_key);
end;
$$;
"""


def test_a_wait_holds_one_key_for_all_and_at_most_one_for_each_of_32_classes_of_ids(
    worker: Connection, waiter: Connection, ear: Ear
) -> None:
    waits(waiter, 7)
    assert advisory_locks(waiter) == 2
    waits(waiter, 7, 7 + 32, 8)
    assert advisory_locks(waiter) == 3
    waits(waiter, *range(1, 1001))
    assert advisory_locks(waiter) == 33

    lease = leased(worker)
    one(worker, "complete", *owner(lease))
    assert _ends(ear) == [f"d{lease.job_id}"]
    call(waiter, "sleep_end")
    assert advisory_locks(waiter) == 0


@pytest.mark.parametrize("job_ids", [[], None, list(range(1001))])
@pytest.mark.parametrize("function", ["wait_begin", "results"])
def test_a_number_of_jobs_that_is_none_or_too_large_is_refused(
    waiter: Connection, function: str, job_ids: list[int] | None
) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="the number of jobs is"):
        waiter.execute(f"select * from tenure.{function}(%s::bigint[])".encode(), [job_ids])


def test_a_wait_is_refused_in_a_transaction_that_has_written(waiter: Connection) -> None:
    waiter.execute("begin; select pg_current_xact_id()")
    with pytest.raises(psycopg.Error) as caught:
        waits(waiter, 1)
    assert caught.value.sqlstate == "TN003"


def test_a_wait_says_so_when_a_key_cannot_be_had(worker: Connection, waiter: Connection) -> None:
    worker.execute("select pg_advisory_lock(tenure.install_key(), -1)")
    assert one(waiter, "wait_begin", [1])[0] is None
    assert advisory_locks(waiter) == 0


@pytest.mark.parametrize("end", [completes, fails_for_good, is_cancelled_while_queued])
def test_a_wait_has_not_settled_before_one_who_looked_for_waiters_has_ended(
    worker: Connection,
    waiter: Connection,
    session: Session,
    ear: Ear,
    clock: SteppedClock,
    end: Callable[[Connection, SteppedClock, Any], None],
) -> None:
    ender = session()
    lease = leased(worker)
    ender.execute("begin")
    end(ender, clock, lease)

    horizon = waits(waiter, lease.job_id)
    assert not settled(waiter, horizon)
    assert one(waiter, "results", [lease.job_id]).status == "running"
    ender.execute("commit")

    assert _ends(ear) == []
    assert settled(waiter, horizon)
    assert one(waiter, "results", [lease.job_id]).status != "running"


def test_one_who_ends_a_job_while_a_waiter_takes_its_keys_is_waited_for(
    worker: Connection, waiter: Connection, session: Session, watcher: Connection, gate: Gate
) -> None:
    ender = session()
    lease = leased(worker)
    worker.execute(_KEYS_AT_THE_GATE)
    with gate.closed(waiter, "keys"):
        begins = started(lambda: waits(waiter, lease.job_id))
        assert gate.stopped(watcher, waiter, begins)
        ender.execute("begin")
        assert one(ender, "complete", *owner(lease)).verdict == "ok"
    horizon = begins.result(10)

    assert not settled(waiter, horizon)
    ender.execute("commit")
    assert settled(waiter, horizon)


def test_results_say_how_each_job_stands_and_what_came_of_it(
    worker: Connection, clock: SteppedClock
) -> None:
    queued, running = enqueued(worker), leased(worker)
    done, failed, lapsed = leased(worker), leased(worker), leased(worker, max_attempts=1)
    one(worker, "complete", *owner(done), Jsonb(0))
    cancelled = enqueued(worker)
    one(worker, "cancel", cancelled)
    one(worker, "fail", *owner(failed), "ValueError", "broken: it", retryable=False)
    call(worker, "renew", "ada", [running.job_id], [running.token], 5 * MINUTE)
    clock.advance(MINUTE)
    assert [row.job_id for row in call(worker, "sweep", "bob")] == [lapsed.job_id]
    ids = [queued, running.job_id, done.job_id, failed.job_id, lapsed.job_id, cancelled]

    rows = {row.job_id: tuple(row)[1:] for row in call(worker, "results", [*ids, 999_999])}

    assert rows == {
        queued: (0, "queued", None, None, None),
        running.job_id: (1, "running", None, None, None),
        done.job_id: (1, "completed", 0, None, None),
        failed.job_id: (1, "failed", None, "ValueError", "broken: it"),
        lapsed.job_id: (2, "failed", None, None, "lease lapsed on the last attempt"),
        cancelled: (0, "cancelled", None, None, None),
    }


def test_a_null_among_the_jobs_that_are_waited_for_is_passed_over(waiter: Connection) -> None:
    (horizon,) = one(waiter, "wait_begin", [None, 7])
    assert horizon is not None
    assert advisory_locks(waiter) == 2
