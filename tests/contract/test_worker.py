"""A worker over a real control plane: it runs what it was lent, and ends each lease."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure import CancelRequested, Job, LeaseLost, Worker
from tenure.control_plane import ControlPlane
from tenure.records import JobRecord, Records
from tenure.values import JobLease, JobStatus, Verdict
from tests.contract.backends import Clock
from tests.contract.scenario import Scene


@pytest.fixture
def scene(control_plane: ControlPlane, clock: Clock) -> Scene:
    return Scene(control_plane, clock)


def record(records: Records, lease: JobLease) -> JobRecord:
    job = records.job(lease.job_id)
    assert job is not None
    return job


def test_a_worker_runs_the_job_it_was_lent_and_completes_it(scene: Scene, records: Records) -> None:
    lease = scene.lease(payload=[20, 22])

    settled = Worker(scene.control_plane, {"work": lambda job: sum(job.payload)}).run(lease)

    assert settled is not None
    assert settled.verdict is Verdict.OK
    assert (record(records, lease).status, record(records, lease).result) == (
        JobStatus.COMPLETED,
        42,
    )


def test_a_worker_asks_for_no_job_of_its_own(scene: Scene, records: Records) -> None:
    waiting = scene.enqueue()
    Worker(scene.control_plane, {"work": lambda job: None}).run(scene.lease())

    job = records.job(waiting)
    assert job is not None
    assert job.status is JobStatus.QUEUED


def test_a_handler_that_raises_is_tried_again_until_its_attempts_are_spent(
    scene: Scene, records: Records, clock: Clock
) -> None:
    def broken(job: Job) -> None:
        raise LookupError("no such page")

    worker = Worker(scene.control_plane, {"work": broken})
    lease = scene.lease(max_attempts=2)
    worker.run(lease)
    assert record(records, lease).status is JobStatus.QUEUED
    clock.advance(timedelta(hours=1))
    worker.run(scene.lease(job_id=lease.job_id))

    job = record(records, lease)
    assert (job.status, job.attempt, job.last_error) == (
        JobStatus.FAILED,
        2,
        "LookupError: no such page",
    )


def test_a_worker_whose_job_was_reclaimed_meanwhile_writes_nothing(
    scene: Scene, records: Records
) -> None:
    """Progress, seal and result are each refused, and the handler is told."""
    lease = scene.lease()
    told = []

    def overtaken(job: Job) -> str:
        scene.reclaim(lease)
        for write in (lambda: job.progress("late"), lambda: job.seal("late")):
            with pytest.raises(LeaseLost):
                write()
            told.append(True)
        return "late"

    settled = Worker(scene.control_plane, {"work": overtaken}).run(lease)

    job = record(records, lease)
    assert told == [True, True]
    assert settled is None or settled.verdict is Verdict.LOST
    assert (job.status, job.worker_id, job.token) == (JobStatus.RUNNING, "bob", 2)
    assert (job.progress, job.sealed_at, job.result) == (None, None, None)


def test_a_handler_whose_job_is_cancelled_stops_at_its_next_progress(
    scene: Scene, records: Records
) -> None:
    lease = scene.lease()

    def long(job: Job) -> None:
        job.progress(1)
        scene.cancel(lease)
        with pytest.raises(CancelRequested):
            job.progress(2)
        job.check()

    settled = Worker(scene.control_plane, {"work": long}).run(lease)

    assert settled is not None
    assert (settled.verdict, settled.status) == (Verdict.OK, JobStatus.CANCELLED)
    assert record(records, lease).progress == 1
