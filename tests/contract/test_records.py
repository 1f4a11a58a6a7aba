"""What people see of jobs and queues."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tenure.control_plane import ControlPlane
from tenure.errors import InvalidArgument
from tenure.records import JobRecord, Records
from tenure.values import JobStatus, NewJob
from tests.contract.backends import Backend, Clock
from tests.contract.scenario import BROKEN_FOR_GOOD, MINUTE, SECOND, Scene


@pytest.fixture
def scene(control_plane: ControlPlane, clock: Clock) -> Scene:
    return Scene(control_plane, clock)


def a_job_in_every_shade(scene: Scene) -> dict[str, int]:
    jobs = {}
    retrying, failed, completed = scene.lease(), scene.lease(), scene.lease()
    jobs["running"] = scene.lease().job_id
    scene.fail(retrying)
    scene.fail(failed, BROKEN_FOR_GOOD)
    scene.complete(completed)
    jobs |= {
        "retrying": retrying.job_id,
        "failed": failed.job_id,
        "completed": completed.job_id,
        "queued": scene.enqueue(),
        "scheduled": scene.enqueue(delay=MINUTE),
        "cancelled": scene.enqueue(),
    }
    scene.control_plane.cancel(jobs["cancelled"])
    return jobs


def record_of(records: Records, job_id: int) -> JobRecord:
    job = records.job(job_id)
    assert job is not None
    return job


def test_every_job_has_its_shade_live_or_ended(scene: Scene, records: Records) -> None:
    jobs = a_job_in_every_shade(scene)

    for shade, job_id in jobs.items():
        assert record_of(records, job_id).shade == shade


def test_only_a_job_that_waits_is_due_at_some_time(scene: Scene, records: Records) -> None:
    jobs = a_job_in_every_shade(scene)

    due = {shade for shade, job_id in jobs.items() if record_of(records, job_id).next_attempt_at}
    assert due == {"queued", "scheduled", "retrying"}


def test_an_unknown_job_is_none_and_has_no_attempts(scene: Scene, records: Records) -> None:
    assert records.job(scene.enqueue() + 1_000_000) is None
    assert records.attempts(scene.enqueue() + 1_000_000) == []


def test_jobs_are_listed_newest_first_up_to_the_limit(scene: Scene, records: Records) -> None:
    jobs = sorted(a_job_in_every_shade(scene).values(), reverse=True)

    assert [job.job_id for job in records.jobs()] == jobs
    assert [job.job_id for job in records.jobs(limit=3)] == jobs[:3]
    assert records.jobs(limit=3) == [records.job(job_id) for job_id in jobs[:3]]


def test_jobs_are_listed_by_queue(backend: Backend) -> None:
    here, there = (Scene(backend.control_plane, backend.clock) for _ in range(2))
    ours, theirs = a_job_in_every_shade(here), a_job_in_every_shade(there)

    def listed(scene: Scene, status: str | None = None) -> set[int]:
        return {job.job_id for job in backend.records.jobs(queue=scene.queue, status=status)}

    assert listed(here) == set(ours.values())
    assert listed(there, "failed") == {theirs["failed"]}
    assert listed(here, "retrying") == {ours["retrying"]}
    assert backend.records.jobs(queue="elsewhere") == []


def test_jobs_are_listed_by_status_and_by_shade(scene: Scene, records: Records) -> None:
    jobs = a_job_in_every_shade(scene)

    def listed(status: JobStatus | str) -> set[int]:
        return {job.job_id for job in records.jobs(status=status)}

    for shade in ("running", "completed", "failed", "cancelled", "retrying", "scheduled"):
        assert listed(shade) == {jobs[shade]}
    assert listed(JobStatus.QUEUED) == {jobs[s] for s in ("queued", "retrying", "scheduled")}


def test_queues_are_listed_by_name_with_what_waits_and_runs(
    scene: Scene, records: Records, clock: Clock
) -> None:
    names = ["é", "b", "B", "a", "Z", "10", "9", "_"]
    scene.control_plane.enqueue_many([NewJob(queue=name, kind="work") for name in names])
    scene.control_plane.pause("paused ahead")
    ended = scene.lease()
    scene.complete(ended)

    listed = records.queues()

    assert [q.queue for q in listed] == sorted([*names, "paused ahead"])
    assert {(q.queued, q.oldest_due_at) for q in listed if q.paused_at is None} == {(1, clock.now)}
    [paused] = [q for q in listed if q.paused_at is not None]
    assert (paused.queued, paused.running, paused.oldest_due_at) == (0, 0, None)


def test_a_queue_counts_each_live_job_once_by_its_shade(
    scene: Scene, records: Records, clock: Clock
) -> None:
    for _ in range(4):
        scene.lease()
    clock.advance(SECOND)
    for delay in (timedelta(0), MINUTE, MINUTE):
        scene.fail_with_delay(scene.lease(), delay)
    clock.advance(SECOND)
    for delay in (timedelta(0), SECOND, SECOND):
        scene.enqueue(delay=delay)
    scene.control_plane.enqueue("elsewhere", "work", delay=SECOND)

    own, other = sorted(records.queues(), key=lambda q: q.queue == "elsewhere")

    assert (own.running, own.retrying, own.queued, own.scheduled) == (4, 3, 1, 2)
    assert own.oldest_due_at == clock.now - SECOND
    assert (other.running, other.retrying, other.queued, other.scheduled) == (0, 0, 0, 1)
    assert other.oldest_due_at is None


def test_attempts_are_listed_oldest_first(scene: Scene, records: Records) -> None:
    first = scene.lease()
    second = scene.reclaim(first)
    scene.release(second, started=True)
    third = scene.lease("cleo", job_id=first.job_id)
    scene.fail(third, BROKEN_FOR_GOOD)

    found = [(a.token, a.worker_id, a.verb, a.outcome) for a in records.attempts(first.job_id)]
    assert found == [
        (1, "ada", "reclaim", "lost"),
        (2, "bob", "release", "released"),
        (3, "cleo", "fail", "failed"),
    ]


REFUSED: dict[str, tuple[Callable[[Any], object], str]] = {
    "limit 0": (lambda records: records.jobs(limit=0), "limit is out of range: 0"),
    "limit null": (lambda records: records.jobs(limit=None), "limit is not an int: None"),
    "limit 10,001": (lambda records: records.jobs(limit=10_001), "limit is out of range"),
    "a status that is none": (lambda records: records.jobs(status="done"), "status is not known"),
    "an empty queue": (lambda records: records.jobs(queue=""), "queue is empty"),
    "an id that is text": (lambda records: records.job("7"), "job_id is not an int: '7'"),
    "attempts of text": (lambda records: records.attempts("7"), "job_id is not an int: '7'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_asked_is_refused(backend: Backend, name: str) -> None:
    ask, says = REFUSED[name]

    with pytest.raises(InvalidArgument, match=says):
        ask(backend.records)
