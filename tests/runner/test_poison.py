"""A job that kills its worker: real processes, really killed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure import JobStatus, NewJob, Tenure
from tests.runner.conftest import Spawn
from tests.runner.waiting import eventually, status_of

ENDED = {JobStatus.COMPLETED, JobStatus.FAILED}
POISON = NewJob(kind="poison", max_attempts=3, retry_base=timedelta(0))


def starts_until_ended(app: Tenure, spawn: Spawn, ids: list[int], *, slots: int) -> int:
    """Start a worker again whenever one dies, until the jobs have ended; starts of poison."""

    def ended() -> bool:
        return all(status_of(app, job_id) in ENDED for job_id in ids)

    starts = 0
    for _ in range(6):
        worker = spawn(slots=slots, lease_for=0.3, sweep_every=0.1)
        eventually(lambda w=worker: w.dead or ended(), "it died, or all was done")  # type: ignore[misc]
        worker.close()
        starts += worker.starts_of("poison")
        if ended():
            return starts
    pytest.fail("the poison never reached its limit")


def test_poison_claimed_alone_is_started_exactly_as_often_as_it_may_be(
    app: Tenure, spawn: Spawn
) -> None:
    """O12."""
    [added] = app.enqueue_many([POISON])

    assert starts_until_ended(app, spawn, [added.job_id], slots=1) == 3

    record = app.job(added.job_id)
    assert record is not None
    assert (record.status, record.attempt) == ("failed", 3)
    assert record.last_error == "lease lapsed on the last attempt"
    assert record.finished_at is not None


def test_poison_out_of_a_batch_is_started_once_more_and_costs_its_neighbours_nothing(
    app: Tenure, spawn: Spawn
) -> None:
    """O12: with one attempt each, a neighbour that was charged for a kill would have failed."""
    jobs = [NewJob(kind="nap", payload=0.01, max_attempts=1) for _ in range(49)]
    ids = [added.job_id for added in app.enqueue_many([*jobs[:25], POISON, *jobs[25:]])]

    starts = starts_until_ended(app, spawn, ids, slots=50)

    poison = ids.pop(25)
    assert 3 <= starts <= 4
    assert status_of(app, poison) is JobStatus.FAILED
    for job_id in ids:
        record = app.job(job_id)
        assert record is not None
        assert (record.status, record.attempt) == ("completed", 1)
