"""When a sleeper has to look again: the first due time of what waits for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from tests.postgres.races import Connection, SteppedClock, call, enqueued, leased, one

Session = Callable[[], Connection]
HOUR = timedelta(hours=1)


def test_neither_what_runs_nor_what_waits_elsewhere_is_due(
    session: Session, clock: SteppedClock
) -> None:
    worker = session()
    leased(worker)
    enqueued(worker, "another queue")
    enqueued(worker, delay=HOUR)

    assert one(worker, "next_due", ["q"]).due_in == HOUR


def test_a_queue_that_is_paused_is_not_due_and_hides_no_other(
    session: Session, clock: SteppedClock
) -> None:
    worker = session()
    call(worker, "pause", "another queue")
    enqueued(worker, "another queue")
    enqueued(worker, delay=HOUR)

    assert one(worker, "next_due", ["another queue", "q"]).due_in == HOUR
    assert one(worker, "next_due", ["another queue"]).due_in is None
