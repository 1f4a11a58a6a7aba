"""A floor is a hint: what is noted, published or set by hand hides no job for long."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.postgres.floors import LANE, STEP, claimed, floor, meet, microseconds, press
from tests.postgres.races import (
    MILLISECOND,
    MINUTE,
    SECOND,
    Connection,
    SteppedClock,
    call,
    enqueued,
)

Session = Callable[[], Connection]
HOUR = timedelta(hours=1)


@pytest.fixture
def claimer(session: Session, clock: SteppedClock) -> Connection:
    return session()


@pytest.fixture
def other(session: Session) -> Connection:
    return session()


def set_floors(connection: Connection, value: str, queue: str = "q") -> None:
    connection.execute("select set_config(tenure.floor_setting(%s), %s, false)", [queue, value])


def queue_row(connection: Connection, queue: str = "q") -> Any:
    return connection.execute(
        """
        select q.floors, q.floor_generation,
               nullif(q.floors_published_at, '-infinity') as floors_published_at
          from tenure.queue as q
         where q.queue = %s
        """,
        [queue],
    ).fetchone()


def noted(*, t: int = 0, horizon: int = 0, looked: int = 0, lanes: int = 0) -> str:
    values = [0, t, horizon, looked, *[lanes] * 20]
    return "{" + ",".join(map(str, values)) + "}"


FUTURE = 4_000_000_000_000_000  # the year 2096


BAD_NOTES = [
    "nonsense",
    "{}",
    "{1,2,3}",
    noted()[:-1] + ",0}",
    noted().replace("0", "NULL", 1),
    noted(lanes=10**18),
    noted(lanes=-(10**17)),
    noted(lanes=FUTURE),
    noted(t=FUTURE),
    noted(looked=FUTURE, t=1),
    noted(lanes=FUTURE).replace("{0,", "{3,"),
    "{{" + noted()[1:-1] + "}}",
    " " + noted(lanes=1),
    "{0,0,0,0" + 20 * ",NULL" + "}",
    noted(lanes=10**19),
    "[0:23]=" + noted(lanes=1),
]


def test_a_note_that_cannot_be_right_is_not_believed(
    claimer: Connection, clock: SteppedClock
) -> None:
    for value in BAD_NOTES:
        clock.advance(STEP)
        job_id = enqueued(claimer)
        set_floors(claimer, value)

        assert claimed(claimer) == [job_id], value

        press(claimer, clock, 2)
        job_id = enqueued(claimer)
        assert claimed(claimer) == [job_id], value


def test_what_is_published_by_hand_for_a_lane_that_there_is_not_is_passed_over(
    claimer: Connection, other: Connection, clock: SteppedClock
) -> None:
    call(other, "worker_seen", "ada", ["q"])
    other.execute("update tenure.queue set floors = array[25, 5, 0, 5, -1, 5]")
    meet(claimer)
    press(claimer, clock)
    assert floor(claimer) > 0


def noted_t(connection: Connection) -> int:
    """The instant that the session is proving, in microseconds."""
    [row] = connection.execute(
        "select (current_setting(tenure.floor_setting('q'))::bigint[])[2] as t"
    ).fetchall()
    return int(row.t)


def test_floors_are_brought_forward_every_tenth_of_a_second_and_not_with_every_claim(
    claimer: Connection, clock: SteppedClock
) -> None:
    meet(claimer)
    first = noted_t(claimer)

    clock.advance(99 * MILLISECOND)
    assert claimed(claimer) == []
    assert noted_t(claimer) == first

    clock.advance(MILLISECOND)
    assert claimed(claimer) == []
    assert noted_t(claimer) == microseconds(clock) > first


def test_an_instant_that_has_yet_to_come_is_not_waited_for(
    claimer: Connection, clock: SteppedClock
) -> None:
    """The clock was set back."""
    meet(claimer)
    set_floors(claimer, noted(t=FUTURE))
    assert claimed(claimer) == []
    assert noted_t(claimer) == microseconds(clock)


@pytest.mark.parametrize("function", ["next_eligible_job_id", "next_due"])
def test_a_reader_believes_no_more_than_a_claim_does(
    claimer: Connection, clock: SteppedClock, function: str
) -> None:
    enqueued(claimer)
    for value in ("nonsense", noted(lanes=FUTURE), noted(lanes=-1)):
        set_floors(claimer, value)
        [row] = call(claimer, function, ["q"])
        assert row[0] is not None, value


def test_a_note_harms_only_the_session_that_wrote_it(
    claimer: Connection, other: Connection, clock: SteppedClock
) -> None:
    job_id = enqueued(claimer)
    clock.advance(STEP)

    set_floors(claimer, noted(lanes=microseconds(clock)))

    assert claimed(claimer) == []
    assert claimed(other) == [job_id]


def test_queues_whose_names_hash_alike_do_not_share_floors(
    claimer: Connection, clock: SteppedClock
) -> None:
    row = claimer.execute(
        """
        select min(n.queue) as one, max(n.queue) as other
          from (select 'queue ' || i as queue from generate_series(1, 300000) as i) as n
         group by tenure.queue_key(n.queue)
        having count(*) > 1
         limit 1
        """
    ).fetchone()
    assert row is not None
    first = enqueued(claimer, row.one)
    second = enqueued(claimer, row.other)
    assert claimed(claimer, row.one) == [first]
    for _ in range(3):
        clock.advance(STEP)
        assert claimed(claimer, row.one) == []

    assert floor(claimer, row.one) > 0
    assert claimed(claimer, row.other) == [second]


def test_the_longest_names_do_not_share_floors(claimer: Connection, clock: SteppedClock) -> None:
    names = ["ü" * 63 + "a1", "ü" * 63 + "a2"]
    jobs = [enqueued(claimer, name) for name in names]
    assert claimed(claimer, names[0]) == jobs[:1]
    for _ in range(3):
        clock.advance(STEP)
        assert claimed(claimer, names[0]) == []

    assert claimed(claimer, names[1]) == jobs[1:]


def test_floors_are_published_in_the_row_of_a_queue_that_a_worker_listed(
    claimer: Connection, other: Connection, clock: SteppedClock
) -> None:
    meet(claimer)
    press(claimer, clock)
    assert queue_row(claimer) is None  # a claim makes no row

    call(other, "worker_seen", "ada", ["q", "another queue"])
    press(claimer, clock)

    assert not queue_row(claimer, "another queue").floors
    assert dict(zip(*[iter(queue_row(claimer).floors)] * 2, strict=True))[LANE] > 0
    claimed(other)
    assert 0 < floor(other) <= floor(claimer)


def test_floors_are_published_at_most_every_thirty_seconds(
    claimer: Connection, clock: SteppedClock
) -> None:
    call(claimer, "worker_seen", "ada", ["q"])
    meet(claimer)
    press(claimer, clock)
    first = queue_row(claimer).floors_published_at

    press(claimer, clock)
    assert queue_row(claimer).floors_published_at == first
    clock.advance(31 * SECOND)
    press(claimer, clock, 1)
    assert queue_row(claimer).floors_published_at > first


def test_a_claim_does_not_wait_to_publish_floors(
    claimer: Connection, other: Connection, clock: SteppedClock
) -> None:
    call(claimer, "worker_seen", "ada", ["q"])
    meet(claimer)
    other.execute("begin; select from tenure.queue for update")

    press(claimer, clock)
    job_id = enqueued(claimer)
    assert claimed(claimer) == [job_id]

    other.execute("commit")
    assert queue_row(claimer).floors == []
    press(claimer, clock, 1)
    assert queue_row(claimer).floors != []


def test_a_published_floor_in_the_future_is_not_believed(
    claimer: Connection, clock: SteppedClock
) -> None:
    call(claimer, "worker_seen", "ada", ["q"])
    job_id = enqueued(claimer)
    claimer.execute("update tenure.queue set floors = %s::bigint[]", [[LANE, FUTURE, 99, 1]])

    assert claimed(claimer) == [job_id]


def published(claimer: Connection, clock: SteppedClock) -> None:
    call(claimer, "worker_seen", "ada", ["q"])
    meet(claimer)
    press(claimer, clock)
    assert queue_row(claimer).floors != []


def straggler(connection: Connection) -> int:
    """A job that somebody dated back by hand, behind every floor."""
    job_id = enqueued(connection)
    connection.execute(
        "update tenure.job set next_attempt_at = next_attempt_at - interval '1 hour' where id = %s",
        [job_id],
    )
    return job_id


def test_a_job_behind_the_floor_is_found_within_a_minute_by_a_sweep(
    claimer: Connection, other: Connection, session: Session, clock: SteppedClock
) -> None:
    published(claimer, clock)
    call(other, "sweep", "ada")
    job_id = straggler(other)
    clock.advance(STEP)
    assert claimed(claimer) == claimed(session()) == []

    clock.advance(50 * SECOND)
    call(other, "sweep", "ada")
    assert claimed(claimer) == []
    clock.advance(11 * SECOND)
    call(other, "sweep", "ada")

    assert claimed(claimer) == [job_id]


def test_every_session_forgets_the_floors_of_a_queue_with_a_straggler(
    claimer: Connection, other: Connection, clock: SteppedClock
) -> None:
    published(claimer, clock)
    assert claimed(other) == []
    assert floor(other) > 0
    jobs = [straggler(claimer) for _ in range(6)]
    generation = queue_row(claimer).floor_generation

    call(claimer, "sweep", "ada")

    assert queue_row(claimer).floor_generation == generation + 1
    assert queue_row(claimer).floors == []
    assert claimed(claimer) == jobs[:5]
    assert claimed(other) == jobs[5:]


def test_one_sweep_at_a_time_looks_for_stragglers(
    claimer: Connection, other: Connection, clock: SteppedClock
) -> None:
    published(claimer, clock)
    job_id = straggler(claimer)
    other.execute("begin; select from tenure.install for update")

    call(claimer, "sweep", "ada")
    assert claimed(claimer) == []
    other.execute("rollback")
    call(claimer, "sweep", "ada")

    assert claimed(claimer) == [job_id]


def test_a_clock_set_back_hides_no_job(
    claimer: Connection, session: Session, clock: SteppedClock
) -> None:
    published(claimer, clock)
    call(claimer, "sweep", "ada")

    clock.advance(-HOUR)
    jobs = [enqueued(claimer) for _ in range(2)]
    call(claimer, "sweep", "ada")
    found = call(claimer, "claim", ["q"], "ada")[0].job_id
    clock.advance(HOUR + 2 * MINUTE)
    call(claimer, "sweep", "ada")

    assert found == jobs[0]
    assert jobs[1] in claimed(session())
