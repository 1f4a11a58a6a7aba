"""No floor ever passes a job that can still appear before it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import pytest

from tests.postgres.floors import (
    STEP,
    WRITERS,
    claimed,
    floor,
    hold,
    meet,
    microseconds,
    of_a_later_priority,
    of_another_queue,
    press,
    that_is_solo,
)
from tests.postgres.races import (
    LONGEST_WAIT,
    MILLISECOND,
    SECOND,
    Connection,
    Gate,
    SteppedClock,
    call,
    enqueued,
    leased,
    one,
    started,
)

BESIDE = ("nothing", "a write transaction", "a snapshot")


@pytest.fixture
def claimer(session: Callable[[], Connection], clock: SteppedClock) -> Connection:
    """A session that has met the lanes of the tests' jobs, and brings their floors forward."""
    claimer = session()
    meet(claimer)
    meet(claimer, solo=True)
    press(claimer, clock)
    return claimer


@pytest.fixture
def writer(session: Callable[[], Connection]) -> Connection:
    return session()


@pytest.fixture
def other(session: Callable[[], Connection]) -> Connection:
    return session()


@pytest.mark.parametrize("beside", BESIDE)
def test_the_floor_follows_the_time_in_spite_of(
    claimer: Connection, other: Connection, clock: SteppedClock, beside: str
) -> None:
    hold(other, beside)
    before = microseconds(clock)

    press(claimer, clock)

    assert before < floor(claimer) < microseconds(clock)


def that_runs(writer: Connection) -> None:
    leased(writer)


@pytest.mark.parametrize("a_job", [of_another_queue, of_a_later_priority, that_is_solo, that_runs])
def test_the_floor_of_a_lane_passes_a_job(
    claimer: Connection,
    writer: Connection,
    clock: SteppedClock,
    a_job: Callable[[Connection], None],
) -> None:
    a_job(writer)
    before = microseconds(clock)

    for _ in range(3):
        clock.advance(STEP)
        job_id = enqueued(writer)
        [lease] = call(claimer, "claim", ["q"], "ada", 1, 30 * SECOND, False)
        assert lease.job_id == job_id

    assert before < floor(claimer) < microseconds(clock)


def test_a_lane_that_was_never_met_gets_no_floor(claimer: Connection, clock: SteppedClock) -> None:
    press(claimer, clock)
    assert {floor(claimer, lane=lane) for lane in range(1, 21) if lane not in (11, 12)} == {-1}


def test_a_closer_look_is_taken_a_second_after_one_in_vain_however_often_one_claims(
    claimer: Connection, writer: Connection, other: Connection, clock: SteppedClock
) -> None:
    other.execute("begin; select pg_current_xact_id()")
    writer.execute("begin")
    enqueued(writer, "r")
    press(claimer, clock, 2)  # then in vain: the writer is older than what is being proved
    writer.execute("rollback")
    before = floor(claimer)

    clock.advance(0.6 * SECOND)
    assert claimed(claimer) == []
    assert floor(claimer) == before
    clock.advance(0.6 * SECOND)
    assert claimed(claimer) == []
    assert floor(claimer) > before


def test_the_floor_stays_at_the_first_job_that_waits_though_somebody_holds_it(
    claimer: Connection, other: Connection, clock: SteppedClock
) -> None:
    job_id, due = enqueued(other), microseconds(clock)
    other.execute("begin")
    assert one(other, "claim_job", job_id, "bob") is not None

    press(claimer, clock, 4)
    other.execute("rollback")

    assert floor(claimer) == due
    assert claimed(claimer) == [job_id]


@pytest.mark.parametrize("verb", WRITERS)
def test_a_job_of_a_transaction_left_open_is_found_after_its_commit(
    claimer: Connection, writer: Connection, other: Connection, clock: SteppedClock, verb: str
) -> None:
    for beside in BESIDE:
        what = WRITERS[verb].prepare(writer, clock)
        press(claimer, clock)
        hold(other, beside)

        writer.execute("begin")
        job_id = WRITERS[verb].write(writer, what)
        press(claimer, clock, 4)
        writer.execute("commit")

        assert claimed(claimer) == [job_id], beside
        other.execute("rollback")


@pytest.mark.parametrize("verb", WRITERS)
def test_a_job_is_found_wherever_its_writer_was_held_up_on_the_way(
    claimer: Connection,
    writer: Connection,
    other: Connection,
    watcher: Connection,
    clock: SteppedClock,
    gate: Gate,
    verb: str,
) -> None:
    for beside, reading in product(("nothing", "a write transaction"), (1, 2, 3)):
        what = WRITERS[verb].prepare(writer, clock)
        press(claimer, clock)
        hold(other, beside)

        writer.execute("begin")
        with gate.closed(writer, f"after {reading}"):
            write = started(partial(WRITERS[verb].write, writer, what))
            stopped = gate.stopped(watcher, writer, write)
            press(claimer, clock)
        job_id = write.result(LONGEST_WAIT)
        press(claimer, clock)
        writer.execute("commit")

        assert stopped or reading > 1
        assert claimed(claimer) == [job_id], (beside, reading)
        other.execute("rollback")


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_job_is_found_wherever_a_claim_was_held_up_when_its_writer_came(
    claimer: Connection,
    writer: Connection,
    watcher: Connection,
    clock: SteppedClock,
    gate: Gate,
    side: str,
) -> None:
    for reading in (1, 2, 3):
        clock.advance(STEP)
        with gate.closed(claimer, f"{side} {reading}"):
            claim = started(lambda: claimed(claimer))
            stopped = gate.stopped(watcher, claimer, claim)
            writer.execute("begin")
            job_id = enqueued(writer)
            clock.advance(50 * MILLISECOND)
        assert claim.result(LONGEST_WAIT) == []
        press(claimer, clock)
        writer.execute("commit")

        assert stopped == (reading < 3)
        assert claimed(claimer) == [job_id], reading


def test_a_claim_is_dated_after_the_instant_that_its_floor_rests_on(
    claimer: Connection, writer: Connection, watcher: Connection, clock: SteppedClock, gate: Gate
) -> None:
    clock.advance(STEP)
    with gate.closed(claimer, "before 2"):
        claim = started(lambda: claimed(claimer))
        assert gate.stopped(watcher, claimer, claim)
        clock.advance(STEP)
        job_id = enqueued(writer)

    assert claim.result(LONGEST_WAIT) == [job_id]
    press(claimer, clock)


@pytest.mark.parametrize("first", ["select pg_current_xact_id()", "a claim"])
def test_a_claim_in_a_transaction_that_has_written_proves_nothing(
    claimer: Connection, writer: Connection, clock: SteppedClock, first: str
) -> None:
    clock.advance(STEP)
    claimer.execute("begin")
    if first == "a claim":
        assert claimed(claimer) == []
    else:
        claimer.execute(first)
    writer.execute("begin")
    job_id = enqueued(writer)

    press(claimer, clock)
    claimer.execute("commit")
    press(claimer, clock)
    writer.execute("commit")

    assert claimed(claimer) == [job_id]


def test_what_a_transaction_noted_is_forgotten_when_it_is_rolled_back(
    session: Callable[[], Connection], writer: Connection, clock: SteppedClock
) -> None:
    newcomer = session()
    newcomer.execute("begin")
    job_id = enqueued(newcomer)
    assert claimed(newcomer) == [job_id]
    press(newcomer, clock)
    newcomer.execute("rollback")
    row = newcomer.execute("select current_setting(tenure.floor_setting('q'), true)").fetchone()
    assert row is not None
    assert not row[0]

    meet(newcomer)
    writer.execute("begin")
    job_id = enqueued(writer)
    press(newcomer, clock)
    newcomer.execute("begin")
    press(newcomer, clock)
    newcomer.execute("rollback")
    press(newcomer, clock)
    writer.execute("commit")

    assert claimed(newcomer) == [job_id]


@pytest.mark.parametrize("beside", ["nothing", "a write transaction"])
def test_a_job_of_a_prepared_transaction_is_found_after_its_commit(
    claimer: Connection, writer: Connection, other: Connection, clock: SteppedClock, beside: str
) -> None:
    if writer.execute("show max_prepared_transactions").fetchone() == ("0",):
        pytest.skip("the server has max_prepared_transactions = 0")
    hold(other, beside)

    writer.execute("begin")
    job_id = enqueued(writer, notify=False)
    writer.execute("prepare transaction 'tenure'")
    try:
        press(claimer, clock, 4)
    except BaseException:
        writer.execute("rollback prepared 'tenure'")
        raise
    writer.execute("commit prepared 'tenure'")

    assert claimed(claimer) == [job_id]


def test_a_forgotten_prepared_transaction_without_jobs_is_no_hindrance(
    claimer: Connection, writer: Connection, clock: SteppedClock
) -> None:
    if writer.execute("show max_prepared_transactions").fetchone() == ("0",):
        pytest.skip("the server has max_prepared_transactions = 0")
    writer.execute("begin; create temporary table t () on commit drop; rollback")
    writer.execute("begin; select pg_current_xact_id(); prepare transaction 'forgotten'")
    before = microseconds(clock)
    try:
        press(claimer, clock, 4)
    finally:
        writer.execute("rollback prepared 'forgotten'")

    assert before < floor(claimer) < microseconds(clock)


def test_a_job_is_found_when_its_writer_ends_while_a_claim_looks_for_writers(
    claimer: Connection, writer: Connection, watcher: Connection, clock: SteppedClock, gate: Gate
) -> None:
    claimer.execute(_LOOK_AT_THE_GATE)
    writer.execute("begin")
    job_id = enqueued(writer)
    press(claimer, clock)

    clock.advance(STEP)
    with gate.closed(claimer, "looking"):
        claim = started(lambda: claimed(claimer))
        assert gate.stopped(watcher, claimer, claim)
        writer.execute("commit")
    found = claim.result(LONGEST_WAIT)
    clock.advance(STEP)

    assert [*found, *claimed(claimer)] == [job_id]


_LOOK_AT_THE_GATE = """
alter function tenure.writers_ended(bigint, boolean) rename to writers_ended_in_fact;

create function tenure.writers_ended(p_horizon bigint, p_look_closer boolean)
  returns boolean
  language plpgsql
  volatile
  security definer
  set search_path = tenure, pg_temp
as $$
begin
  if current_setting('tests.stop', true) = 'looking' then
    perform pg_advisory_lock_shared(7), pg_advisory_unlock_shared(7);
  end if;
  return writers_ended_in_fact(p_horizon, p_look_closer);
end;
$$;
"""
