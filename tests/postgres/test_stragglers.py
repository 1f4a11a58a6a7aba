"""What counts as a job that was left behind a published floor, and what is done about it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.postgres.floors import (
    LANE,
    microseconds,
    of_a_later_priority,
    of_another_queue,
    that_is_solo,
)
from tests.postgres.races import MINUTE, SECOND, Connection, SteppedClock, call, enqueued, leased

Session = Callable[[], Connection]

SIX = 13
"""The lane of priority 6, not solo."""


@pytest.fixture
def sweeper(session: Session, clock: SteppedClock) -> Connection:
    sweeper = session()
    call(sweeper, "worker_seen", "ada", ["q", "r"])
    call(sweeper, "sweep", "ada")
    return sweeper


def publish(connection: Connection, queue: str, *pairs: int) -> None:
    connection.execute("update tenure.queue set floors = %s where queue = %s", [list(pairs), queue])


def published(connection: Connection, queue: str) -> tuple[list[int], int]:
    [row] = connection.execute(
        "select q.floors, q.floor_generation from tenure.queue as q where q.queue = %s", [queue]
    ).fetchall()
    return row.floors, row.floor_generation


def that_runs(connection: Connection) -> None:
    leased(connection, lease_for=timedelta(hours=1))


def that_is_due_later(connection: Connection) -> None:
    enqueued(connection, delay=SECOND)


@pytest.mark.parametrize(
    "a_job",
    [of_another_queue, of_a_later_priority, that_is_solo, that_runs, that_is_due_later],
)
def test_no_straggler_is_a_job(
    sweeper: Connection, clock: SteppedClock, a_job: Callable[[Connection], None]
) -> None:
    a_job(sweeper)
    floor = microseconds(clock) + 1
    publish(sweeper, "q", LANE, floor)
    clock.advance(2 * MINUTE)

    call(sweeper, "sweep", "ada")

    assert published(sweeper, "q") == ([LANE, floor], 0)


@pytest.mark.parametrize("lanes", [(LANE, SIX), (SIX, LANE)])
def test_a_straggler_in_any_lane_resets_the_floors_of_its_queue_alone(
    sweeper: Connection, clock: SteppedClock, lanes: tuple[int, int]
) -> None:
    enqueued(sweeper)
    floor = microseconds(clock) + 1
    publish(sweeper, "q", lanes[0], floor, lanes[1], floor)
    publish(sweeper, "r", LANE, floor)
    clock.advance(2 * MINUTE)

    call(sweeper, "sweep", "ada")

    assert published(sweeper, "q") == ([], 1)
    assert published(sweeper, "r") == ([LANE, floor], 0)


def test_stragglers_are_sought_anew_when_the_last_time_lies_in_the_future(
    sweeper: Connection, clock: SteppedClock
) -> None:
    """The clock was set back."""
    sweeper.execute("update tenure.install set stragglers_sought_at = '2096-01-01'")
    enqueued(sweeper)
    publish(sweeper, "q", LANE, microseconds(clock) + 1)
    call(sweeper, "sweep", "ada")
    assert published(sweeper, "q") == ([], 1)


def test_floors_of_an_earlier_generation_are_not_published(
    sweeper: Connection, clock: SteppedClock
) -> None:
    sweeper.execute("update tenure.queue set floor_generation = 1")
    floors: list[Any] = [0, 0, 0, 0, *[-1] * 10, 5, *[-1] * 9]
    call(sweeper, "publish_floors", "q", floors, clock.now)
    assert published(sweeper, "q") == ([], 1)

    floors[0] = 1
    call(sweeper, "publish_floors", "q", floors, clock.now)
    assert published(sweeper, "q") == ([LANE, 5], 1)
