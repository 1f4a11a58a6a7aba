"""What is done to one job leaves the jobs beside it as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tenure.control_plane import ControlPlane
from tenure.records import Records
from tenure.values import (
    JobLease,
    JobStatus,
    LeaseRenewal,
    NewJob,
    Outcome,
    Verb,
    Verdict,
)
from tests.contract.backends import Backend, Clock
from tests.contract.scenario import BROKEN, BROKEN_FOR_GOOD, MINUTE, SECOND, Scene

Act = Callable[[Scene, JobLease], object]


@pytest.fixture
def scene(control_plane: ControlPlane, clock: Clock) -> Scene:
    return Scene(control_plane, clock)


def neighbours(scene: Scene) -> list[int]:
    """A job in each state: the same worker has the running ones, under the same token."""
    plane = scene.control_plane
    running, sealed, requested = scene.lease(), scene.lease(), scene.lease()
    scene.seal(sealed)
    scene.cancel(requested)
    completed, failed, retrying, cancelled = (scene.lease() for _ in range(4))
    scene.complete(completed)
    scene.fail(failed, BROKEN_FOR_GOOD)
    scene.fail(retrying)
    scene.cancel(cancelled)
    scene.acknowledge(cancelled)
    waiting = scene.enqueue(dedup_key="waiting", delay=MINUTE)
    dropped = scene.enqueue(dedup_key="dropped", delay=MINUTE)
    plane.cancel(dropped)
    leases = (running, sealed, requested, completed, failed, retrying, cancelled)
    assert {lease.token for lease in leases} == {1}
    return [*(lease.job_id for lease in leases), waiting, dropped]


def seen(records: Records, job_ids: list[int]) -> list[Any]:
    return [(records.job(job_id), records.attempts(job_id)) for job_id in job_ids]


def owner(lease: JobLease) -> tuple[int, str, int]:
    return lease.job_id, lease.worker_id, lease.token


def settle(scene: Scene, lease: JobLease) -> None:
    outcome = Outcome(job_id=lease.job_id, token=lease.token, verb=Verb.FAIL, failure=BROKEN)
    [settled] = scene.control_plane.settle(lease.worker_id, [outcome])
    assert settled.verdict is Verdict.OK


def renew(scene: Scene, lease: JobLease) -> None:
    shown = [(lease.job_id, lease.token)]
    [renewal] = scene.control_plane.renew(lease.worker_id, shown, lease_for=MINUTE)
    assert renewal.outcome is LeaseRenewal.RENEWED


def cancel_and_acknowledge(scene: Scene, lease: JobLease) -> None:
    scene.cancel(lease)
    scene.acknowledge(lease)


def fail_and_retry(scene: Scene, lease: JobLease) -> None:
    scene.fail(lease, BROKEN_FOR_GOOD)
    assert scene.control_plane.retry(lease.job_id).verdict is Verdict.OK


def release_and_cancel(scene: Scene, lease: JobLease) -> None:
    scene.release(lease, started=False)
    assert scene.control_plane.cancel(lease.job_id).status is JobStatus.CANCELLED


def release_and_claim(scene: Scene, lease: JobLease) -> None:
    scene.release(lease, started=True)
    assert scene.control_plane.claim_job(lease.job_id, "bob") is not None


ACTS: dict[str, Act] = {
    "renew": renew,
    "progress": lambda scene, lease: scene.control_plane.update_owned(
        *owner(lease), progress=50, lease_for=MINUTE
    ),
    "seal": Scene.seal,
    "complete": Scene.complete,
    "fail": Scene.fail,
    "fail for good": lambda scene, lease: scene.fail(lease, BROKEN_FOR_GOOD),
    "release": lambda scene, lease: scene.release(lease, started=True),
    "release unstarted": lambda scene, lease: scene.release(lease, started=False),
    "cancel": Scene.cancel,
    "cancel, acknowledge": cancel_and_acknowledge,
    "fail for good, retry": fail_and_retry,
    "release, cancel": release_and_cancel,
    "release, claim": release_and_claim,
    "settle": settle,
}


@pytest.mark.parametrize("act", ACTS.values(), ids=list(ACTS))
def test_what_is_done_to_one_job_changes_that_job_only(
    scene: Scene, records: Records, clock: Clock, act: Act
) -> None:
    beside = neighbours(scene)
    lease = scene.lease()
    beside += neighbours(scene)
    before, own = seen(records, beside), seen(records, [lease.job_id])
    clock.advance(SECOND)

    act(scene, lease)

    assert seen(records, [lease.job_id]) != own
    assert seen(records, beside) == before


def test_a_guard_extends_the_lease_of_its_own_job_only(
    backend: Backend, scene: Scene, records: Records
) -> None:
    beside = neighbours(scene)
    lease = scene.lease()
    before = seen(records, beside)

    with backend.transaction() as caller:
        caller.control_plane.guard(*owner(lease), lease_for=MINUTE)

    job = records.job(lease.job_id)
    assert job is not None
    assert job.lease_expires_at == backend.clock.now.replace(microsecond=123_000) + MINUTE
    assert seen(records, beside) == before


@pytest.mark.parametrize("by", ["sweep", "reclaim"])
def test_a_lapsed_lease_is_taken_without_those_that_last(
    scene: Scene, records: Records, clock: Clock, by: str
) -> None:
    lease = scene.lease()
    clock.advance(SECOND)
    beside = neighbours(scene)
    before = seen(records, beside)
    clock.set(lease.lease_expires_at)

    [lapsed] = scene.control_plane.lapsed()
    if by == "sweep":
        [taken] = scene.control_plane.sweep("broom")
        assert taken.job_id == lease.job_id
    else:
        assert scene.control_plane.reclaim(lapsed, "bob") is not None

    assert seen(records, beside) == before


def test_a_worker_holds_its_own_leases_only(scene: Scene) -> None:
    mine, theirs = scene.lease(), scene.lease("bob")

    assert [held.job_id for held in scene.control_plane.held("ada")] == [mine.job_id]
    assert [held.job_id for held in scene.control_plane.held("bob")] == [theirs.job_id]


def test_a_cancellation_is_of_one_job(scene: Scene) -> None:
    beside, lease = scene.lease(), scene.lease()

    scene.cancel(lease)

    plane = scene.control_plane
    assert [plane.cancel_requested(of.job_id) for of in (beside, lease)] == [False, True]
    renewals = plane.renew("ada", [(of.job_id, of.token) for of in (beside, lease)])
    assert {r.job_id: r.cancel_requested for r in renewals} == {
        beside.job_id: False,
        lease.job_id: True,
    }


@pytest.mark.parametrize("together", [False, True], ids=["alone", "in a batch"])
def test_a_dedup_key_belongs_to_its_queue(control_plane: ControlPlane, together: bool) -> None:
    jobs = [NewJob(queue=queue, kind="work", dedup_key="k") for queue in ("a", "b", "a", "b")]

    if together:
        made = control_plane.enqueue_many(jobs)
    else:
        made = [control_plane.enqueue(job.queue, "work", dedup_key="k") for job in jobs]

    assert [one.created for one in made] == [True, True, False, False]
    assert [made[2].job_id, made[3].job_id] == [made[0].job_id, made[1].job_id]


def test_a_job_of_an_open_queue_is_had_while_another_is_paused(
    scene: Scene, control_plane: ControlPlane
) -> None:
    job_id = scene.enqueue()
    control_plane.pause("another")
    control_plane.pause("third")

    assert control_plane.next_eligible_job_id([scene.queue]) == job_id
    assert control_plane.claim_job(job_id, "ada") is not None

    control_plane.resume("third")
    assert control_plane.enqueue("another", "work").created
    assert control_plane.claim(["another"], "ada") == []


def test_what_a_worker_did_before_is_told_from_what_it_did_to_another_job(scene: Scene) -> None:
    """The same worker ended both, under the same token."""
    released, failed = scene.lease(), scene.lease()
    scene.release(released, started=True)
    scene.fail(failed)
    plane = scene.control_plane

    assert plane.fail(*owner(released), BROKEN).verdict is Verdict.LOST
    assert plane.release(*owner(failed), started=True).verdict is Verdict.LOST
    assert plane.fail(*owner(failed), BROKEN).verdict is Verdict.ALREADY
    assert plane.release(*owner(released), started=True).verdict is Verdict.ALREADY


def test_only_the_token_that_ended_an_attempt_is_told_that_it_did(scene: Scene) -> None:
    """The same worker had the job twice and ended its lease in two ways."""
    first = scene.lease()
    scene.release(first, started=True)
    second = scene.lease(job_id=first.job_id)
    scene.fail(second)
    plane = scene.control_plane

    assert plane.release(*owner(first), started=True).verdict is Verdict.ALREADY
    assert plane.fail(*owner(first), BROKEN).verdict is Verdict.LOST
    assert plane.fail(*owner(second), BROKEN).verdict is Verdict.ALREADY
    assert plane.release(*owner(second), started=True).verdict is Verdict.LOST


def test_another_worker_is_not_told_that_a_call_took_effect(scene: Scene) -> None:
    failed, completed = scene.lease(), scene.lease()
    scene.fail(failed)
    scene.complete(completed)
    plane = scene.control_plane

    assert plane.fail(failed.job_id, "bob", failed.token, BROKEN).verdict is Verdict.LOST
    assert plane.complete(completed.job_id, "bob", completed.token).verdict is Verdict.LOST


def test_a_cancellation_is_acknowledged_by_the_present_owner_only(
    scene: Scene, records: Records
) -> None:
    old = scene.lease()
    scene.cancel(old)
    new = scene.reclaim(old)
    plane = scene.control_plane
    before = seen(records, [old.job_id])

    for shown in (owner(old), (new.job_id, "bob", old.token), (new.job_id, "ada", new.token)):
        answer = plane.acknowledge_cancel(*shown)
        assert (answer.verdict, answer.status) == (Verdict.LOST, JobStatus.RUNNING)

    assert seen(records, [old.job_id]) == before
    assert plane.acknowledge_cancel(*owner(new)).status is JobStatus.CANCELLED


def test_attempts_are_trimmed_job_by_job(scene: Scene, records: Records) -> None:
    beside = scene.lease()
    scene.fail(beside)
    job_id = scene.enqueue(max_attempts=30)
    for _ in range(25):
        scene.release(scene.lease(job_id=job_id), started=True)

    assert [attempt.token for attempt in records.attempts(job_id)] == list(range(6, 26))
    assert len(records.attempts(beside.job_id)) == 1


def test_a_lease_is_taken_exactly_as_it_is_pinned(scene: Scene) -> None:
    lease = scene.lease()
    scene.lapse()
    plane = scene.control_plane
    [exact] = plane.lapsed()
    other = scene.enqueue()

    for wrong in (
        replace(exact, job_id=other),
        replace(exact, worker_id="bob"),
        replace(exact, token=lease.token + 1),
        replace(exact, lease_expires_at=lease.lease_expires_at - SECOND),
    ):
        assert plane.reclaim(wrong, "eve") is None
    assert plane.reclaim(exact, "eve") is not None


def test_an_operator_is_told_about_the_job_that_was_asked_for(scene: Scene) -> None:
    plane = scene.control_plane
    completed, failed, cancelled = scene.lease(), scene.lease(), scene.lease()
    scene.complete(completed)
    scene.fail(failed, BROKEN_FOR_GOOD)
    cancel_and_acknowledge(scene, cancelled)
    running, requested = scene.lease(), scene.lease()
    scene.cancel(requested)

    answers = [plane.cancel(job.job_id) for job in (completed, failed, cancelled, requested)]
    assert [(answer.verdict, answer.status) for answer in answers] == [
        (Verdict.REFUSED, JobStatus.COMPLETED),
        (Verdict.REFUSED, JobStatus.FAILED),
        (Verdict.ALREADY, JobStatus.CANCELLED),
        (Verdict.ALREADY, JobStatus.RUNNING),
    ]
    answers = [plane.retry(job.job_id) for job in (completed, running)]
    assert [(answer.verdict, answer.status) for answer in answers] == [
        (Verdict.REFUSED, JobStatus.COMPLETED),
        (Verdict.REFUSED, JobStatus.RUNNING),
    ]
    assert plane.retry(failed.job_id).verdict is Verdict.OK
    assert plane.retry(cancelled.job_id).verdict is Verdict.OK


def test_a_queue_was_paused_when_it_was_itself(scene: Scene, clock: Clock) -> None:
    plane = scene.control_plane
    first, when = plane.pause("first"), clock.now
    clock.advance(SECOND)
    second = plane.pause("second")

    assert (first.paused_at, second.paused_at) == (when, clock.now)
    for queue, at in (("first", when), ("second", clock.now)):
        again = plane.pause(queue)
        assert (again.verdict, again.paused_at) == (Verdict.ALREADY, at)
    assert plane.resume("first").verdict is Verdict.OK
    assert plane.resume("first").verdict is Verdict.ALREADY
    assert plane.pause("second").verdict is Verdict.ALREADY
