"""What a runner gives back of the leases that it has under an earlier name."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure import Tenure
from tenure.backing import backing_of
from tenure.claimer import Claimer
from tenure.ledger import Ledger
from tenure.slots import Slots
from tenure.standing import Standing
from tests.runner.waiting import status_of

LEASE_FOR = timedelta(seconds=30)


class Endless:
    """Handlers that are entered, or not, and never end."""

    def __init__(self, *, enters: bool) -> None:
        self.enters = enters

    def start(self, standing: Standing, ended: object) -> None:
        if self.enters:
            standing.start()

    def close(self) -> None: ...


@pytest.mark.parametrize("entered", [True, False])
def test_a_lost_lease_is_given_back_under_an_earlier_name_unless_its_handler_was_entered(
    app: Tenure, *, entered: bool
) -> None:
    """Given back uncharged, a job could be started more often than it may be."""
    app.install()
    ledger = Ledger()
    place = Endless(enters=entered)
    slots = Slots(
        ["default"],
        2,
        place_for=lambda standing: place,
        ended=lambda standing, outcome: None,
        freed=lambda: None,
        buffer=0,
    )
    claimer = Claimer(
        backing_of(app.store).open, [slots], ledger, lease_for=LEASE_FOR, patience=LEASE_FOR
    )
    job_id = app.enqueue("work").job_id
    claimer.claim()
    [standing] = ledger.all()
    standing.lose("it was not renewed in time")
    ledger.drop(standing)
    name = claimer.worker_id

    claimer.close()  # the next call is over a new connection, under a new name
    claimer.nothing_is_due()

    assert claimer.worker_id != name
    record = app.job(job_id)
    assert record is not None
    assert (status_of(app, job_id), record.attempt) == (
        ("running", 1) if entered else ("queued", 0)
    )
    claimer.close()
