"""What a sleeper asks: when there will be something to claim."""

from __future__ import annotations

from datetime import timedelta

from tenure.sqlite import SqliteControlPlane
from tests.sqlite.conftest import START, Clock

MINUTE = timedelta(minutes=1)


def test_the_earliest_queued_job_of_the_queues_counts(
    control_plane: SqliteControlPlane, clock: Clock
) -> None:
    assert control_plane.next_due(["mail", "parcel"]) is None
    control_plane.enqueue("mail", "send", delay=3 * MINUTE, priority=0)
    control_plane.enqueue("mail", "send", delay=2 * MINUTE, priority=9)
    control_plane.enqueue("parcel", "send", delay=MINUTE)

    assert control_plane.next_due(["mail", "parcel"]) == START + MINUTE
    assert control_plane.next_due(["mail"]) == START + 2 * MINUTE
    clock.advance(5 * MINUTE)
    assert control_plane.now() == START + 5 * MINUTE
    assert control_plane.next_due(["mail"]) == START + 2 * MINUTE


def test_running_jobs_and_paused_queues_do_not_count(control_plane: SqliteControlPlane) -> None:
    control_plane.enqueue("mail", "send")
    control_plane.claim(["mail"], "ada")
    control_plane.enqueue("mail", "send", delay=MINUTE)
    control_plane.enqueue("parcel", "send")
    control_plane.pause("parcel")

    assert control_plane.next_due(["mail", "parcel"]) == START + MINUTE
    control_plane.resume("parcel")
    assert control_plane.next_due(["mail", "parcel"]) == START


def test_a_job_that_goes_on_alone_counts(control_plane: SqliteControlPlane, clock: Clock) -> None:
    control_plane.enqueue("mail", "send")
    control_plane.enqueue("mail", "send")
    control_plane.claim(["mail"], "ada", max_jobs=2)
    clock.advance(MINUTE)
    control_plane.sweep("broom")

    assert control_plane.next_due(["mail"]) == START + MINUTE
