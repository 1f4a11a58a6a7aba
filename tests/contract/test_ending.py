"""Ending a lease: complete, fail, release, seal, and many at once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure.control_plane import ControlPlane
from tenure.records import JobRecord, Records
from tenure.values import Failure, JobStatus, NewJob, Outcome, Verb, Verdict
from tests.contract.backends import Clock
from tests.contract.scenario import BROKEN, BROKEN_FOR_GOOD, MINUTE, SECOND, Scene


@pytest.fixture
def scene(control_plane: ControlPlane, clock: Clock) -> Scene:
    return Scene(control_plane, clock)


def record(records: Records, job_id: int) -> JobRecord:
    job = records.job(job_id)
    assert job is not None
    return job


def test_a_completed_job_keeps_what_it_was_and_what_came_of_it(
    scene: Scene, records: Records, clock: Clock
) -> None:
    lease = scene.lease(payload={"n": 1}, priority=2, timeout=MINUTE, meta={"m": 1})
    created_at = clock.now
    scene.control_plane.update_owned(lease.job_id, "ada", lease.token, progress=99)
    clock.advance(SECOND)

    settled = scene.control_plane.complete(lease.job_id, "ada", lease.token, {"pages": 3})

    assert (settled.verdict, settled.status) == (Verdict.OK, JobStatus.COMPLETED)
    job = record(records, lease.job_id)
    assert (job.status, job.shade, job.result) == (
        JobStatus.COMPLETED,
        "completed",
        {"pages": 3},
    )
    assert (job.payload, job.priority, job.timeout, job.meta) == ({"n": 1}, 2, MINUTE, {"m": 1})
    assert (job.created_at, job.finished_at) == (created_at, clock.now)
    assert (job.worker_id, job.token, job.attempt, job.progress) == ("ada", 1, 1, 99)
    assert records.attempts(lease.job_id) == []


def test_a_completion_without_a_result_has_none(scene: Scene, records: Records) -> None:
    lease = scene.lease()
    scene.control_plane.complete(lease.job_id, "ada", lease.token)

    assert record(records, lease.job_id).result is None


def test_asking_again_after_a_lost_answer_is_safe_and_changes_nothing(
    scene: Scene, records: Records, clock: Clock
) -> None:
    """The retry of a call that took effect is answered already, not lost."""
    plane = scene.control_plane
    lease = scene.lease()
    plane.complete(lease.job_id, "ada", lease.token, {"first": True})
    before = record(records, lease.job_id)
    clock.advance(SECOND)

    again = plane.complete(lease.job_id, "ada", lease.token, {"second": True})

    assert (again.verdict, again.status) == (Verdict.ALREADY, JobStatus.COMPLETED)
    assert record(records, lease.job_id) == before


def test_a_failed_attempt_says_why(scene: Scene, records: Records, clock: Clock) -> None:
    lease = scene.lease()
    claimed_at = clock.now
    clock.advance(SECOND)
    failure = Failure(error_type="KeyError", message="'id'", traceback="line 1\nline 2")

    settled = scene.control_plane.fail(lease.job_id, "ada", lease.token, failure)

    assert settled.status is JobStatus.QUEUED
    job = record(records, lease.job_id)
    assert (job.last_error, job.shade, job.next_attempt_at) == (
        "KeyError: 'id'",
        "retrying",
        settled.next_attempt_at,
    )
    [row] = records.attempts(lease.job_id)
    assert (row.error_type, row.message, row.traceback) == (
        "KeyError",
        "'id'",
        "line 1\nline 2",
    )
    assert (row.started_at, row.ended_at) == (claimed_at, clock.now)


GIVEN_UP = Failure(error_type="Cancel", message="the order is gone", cancel=True)


def test_an_owner_may_cancel_its_own_job_with_a_reason(scene: Scene, records: Records) -> None:
    """By `fail` and by `settle`; the same call again is answered already."""
    plane = scene.control_plane
    by_fail, by_settle = scene.lease(), scene.lease()
    outcome = Outcome(
        job_id=by_settle.job_id, token=by_settle.token, verb=Verb.FAIL, failure=GIVEN_UP
    )

    answers = [
        plane.fail(by_fail.job_id, "ada", by_fail.token, GIVEN_UP),
        *plane.settle("ada", [outcome]),
    ]
    again = plane.fail(by_fail.job_id, "ada", by_fail.token, GIVEN_UP)

    for lease, answer in zip([by_fail, by_settle], answers, strict=True):
        assert (answer.verdict, answer.status) == (Verdict.OK, JobStatus.CANCELLED)
        job = record(records, lease.job_id)
        assert (job.status, job.last_error) == ("cancelled", "Cancel: the order is gone")
        [row] = records.attempts(lease.job_id)
        assert (row.verb, row.outcome, row.message) == ("fail", "cancelled", "the order is gone")
    assert (again.verdict, again.status) == (Verdict.ALREADY, JobStatus.CANCELLED)
    assert plane.retry(by_fail.job_id).verdict is Verdict.OK


def test_nobody_but_the_owner_cancels_by_its_failure(scene: Scene, records: Records) -> None:
    stale = scene.lease()
    scene.lapse()
    scene.control_plane.sweep("bob")
    scene.clock.advance(MINUTE)
    scene.lease("bob", job_id=stale.job_id)

    late = scene.control_plane.fail(stale.job_id, "ada", stale.token, GIVEN_UP)

    assert late.verdict is Verdict.LOST
    assert record(records, stale.job_id).status is JobStatus.RUNNING


def test_a_sealed_job_is_not_cancelled_by_its_owner(scene: Scene, records: Records) -> None:
    lease = scene.lease()
    scene.control_plane.seal(lease.job_id, "ada", lease.token, "done")

    answer = scene.control_plane.fail(lease.job_id, "ada", lease.token, GIVEN_UP)

    assert answer.verdict is Verdict.SEALED
    assert record(records, lease.job_id).status is JobStatus.RUNNING


def test_a_fail_with_a_delay_waits_exactly_that_long(
    scene: Scene, records: Records, clock: Clock
) -> None:
    for delay in (timedelta(0), timedelta(microseconds=1), timedelta(days=3653)):
        lease = scene.lease()
        settled = scene.control_plane.fail(lease.job_id, "ada", lease.token, BROKEN, delay=delay)
        assert settled.next_attempt_at == clock.now + delay
        assert record(records, lease.job_id).next_attempt_at == clock.now + delay


def test_a_release_with_a_delay_waits_exactly_that_long(scene: Scene, clock: Clock) -> None:
    for started in (True, False):
        lease = scene.lease()
        settled = scene.control_plane.release(
            lease.job_id, "ada", lease.token, started=started, delay=MINUTE
        )
        assert settled.next_attempt_at == clock.now + MINUTE


def test_a_release_leaves_the_error_and_the_progress_of_the_attempt_before(
    scene: Scene, records: Records, clock: Clock
) -> None:
    lease = scene.lease()
    scene.fail(lease)
    clock.advance(MINUTE)
    lease = scene.lease(job_id=lease.job_id)
    scene.control_plane.update_owned(lease.job_id, "ada", lease.token, progress=3)
    scene.release(lease, started=True)

    job = record(records, lease.job_id)
    assert (job.last_error, job.progress) == ("ValueError: broken", 3)


def test_a_late_failure_does_not_undo_a_newer_attempt(
    scene: Scene, records: Records, clock: Clock
) -> None:
    plane = scene.control_plane
    lease = scene.lease(max_attempts=3)
    scene.fail_with_delay(lease, timedelta(0))
    stalled = scene.lease(job_id=lease.job_id)
    scene.sweep(stalled, JobStatus.QUEUED)
    clock.advance(MINUTE)
    newest = scene.lease("bob", job_id=lease.job_id)
    ended = plane.fail(newest.job_id, "bob", newest.token, BROKEN)
    assert ended.status is JobStatus.FAILED
    before, rows = record(records, lease.job_id), records.attempts(lease.job_id)
    shown = (stalled.job_id, "ada", stalled.token)

    late = [
        plane.fail(*shown, BROKEN, delay=timedelta(0)),
        plane.complete(*shown, {"late": True}),
        plane.update_owned(*shown, progress="late"),
        plane.release(*shown, started=False),
        plane.seal(*shown),
        plane.acknowledge_cancel(*shown),
    ]

    assert {(s.verdict, s.status) for s in late} == {(Verdict.LOST, JobStatus.FAILED)}
    assert (record(records, lease.job_id), records.attempts(lease.job_id)) == (before, rows)
    assert plane.claim([scene.queue], "ada") == []


def test_the_same_token_with_another_verb_after_the_end_is_late(
    scene: Scene, records: Records
) -> None:
    plane = scene.control_plane
    lease = scene.lease()
    scene.fail(lease)
    shown = (lease.job_id, "ada", lease.token)

    assert plane.complete(*shown).verdict is Verdict.LOST
    assert plane.release(*shown, started=True).verdict is Verdict.LOST
    assert plane.fail(*shown, BROKEN_FOR_GOOD).verdict is Verdict.ALREADY
    assert record(records, lease.job_id).status is JobStatus.QUEUED


def test_a_sealed_result_is_completed_by_a_sweep_and_not_done_again(
    scene: Scene, records: Records, clock: Clock
) -> None:
    lease = scene.lease()
    sealed = scene.control_plane.seal(lease.job_id, "ada", lease.token, {"rows": 7})
    sealed_at = clock.now
    assert (sealed.verdict, sealed.status) == (Verdict.OK, JobStatus.RUNNING)
    assert record(records, lease.job_id).sealed_at == sealed_at

    scene.sweep(lease, JobStatus.COMPLETED)

    job = record(records, lease.job_id)
    assert (job.status, job.result, job.attempt) == (JobStatus.COMPLETED, {"rows": 7}, 1)
    assert scene.control_plane.claim([scene.queue], "bob") == []
    [row] = records.attempts(lease.job_id)
    assert (row.verb, row.outcome, row.worker_id) == ("sweep", "healed", "ada")


def test_the_worker_of_a_healed_job_is_told_that_it_is_done_already(
    scene: Scene, records: Records
) -> None:
    lease = scene.lease()
    scene.seal(lease)
    scene.sweep(lease, JobStatus.COMPLETED)
    before = record(records, lease.job_id)

    complete = scene.control_plane.complete(lease.job_id, "ada", lease.token, {"late": True})
    seal = scene.control_plane.seal(lease.job_id, "ada", lease.token, {"late": True})

    assert (complete.verdict, complete.status) == (Verdict.ALREADY, JobStatus.COMPLETED)
    assert (seal.verdict, seal.status) == (Verdict.ALREADY, JobStatus.COMPLETED)
    assert record(records, lease.job_id) == before


def test_the_result_that_was_sealed_is_the_one_that_is_kept(
    scene: Scene, records: Records, clock: Clock
) -> None:
    plane, lease = scene.control_plane, scene.lease()
    plane.seal(lease.job_id, "ada", lease.token, {"first": True})
    sealed_at = clock.now
    clock.advance(SECOND)

    again = plane.seal(lease.job_id, "ada", lease.token, {"second": True})
    assert again.verdict is Verdict.ALREADY
    assert record(records, lease.job_id).sealed_at == sealed_at
    plane.complete(lease.job_id, "ada", lease.token, {"third": True})
    assert record(records, lease.job_id).result == {"first": True}


def test_a_job_sealed_without_a_result_completes_without_one(
    scene: Scene, records: Records
) -> None:
    lease = scene.lease()
    scene.control_plane.seal(lease.job_id, "ada", lease.token)
    scene.control_plane.complete(lease.job_id, "ada", lease.token, {"given": True})

    assert record(records, lease.job_id).result is None


def test_whoever_reclaims_a_sealed_job_can_only_complete_it(scene: Scene, records: Records) -> None:
    lease = scene.lease()
    scene.seal(lease)
    handed = scene.reclaim(lease)
    plane, shown = scene.control_plane, (handed.job_id, "bob", handed.token)

    assert plane.fail(*shown, BROKEN).verdict is Verdict.SEALED
    assert plane.release(*shown, started=False).verdict is Verdict.SEALED
    assert plane.cancel(handed.job_id).verdict is Verdict.SEALED
    assert plane.complete(*shown).verdict is Verdict.OK
    assert record(records, lease.job_id).result == {"sealed": True}


def test_one_settle_ends_leases_in_every_way_each_on_its_own(
    scene: Scene, records: Records, clock: Clock
) -> None:
    plane = scene.control_plane
    names = ("complete", "fail", "bury", "back", "refund", "stop", "late", "busy")
    leases = {name: scene.lease() for name in names}
    scene.cancel(leases["stop"])
    scene.complete(leases["late"])

    def outcome(name: str, verb: Verb, **options: object) -> Outcome:
        lease = leases[name]
        return Outcome(
            job_id=lease.job_id,
            token=lease.token,
            verb=verb,
            **options,  # type: ignore[arg-type]
        )

    answers = plane.settle(
        "ada",
        [
            outcome("stop", Verb.ACKNOWLEDGE_CANCEL),
            outcome("refund", Verb.RELEASE, started=False),
            outcome("back", Verb.RELEASE, started=True, delay=MINUTE),
            outcome("bury", Verb.FAIL, failure=BROKEN_FOR_GOOD),
            outcome("fail", Verb.FAIL, failure=BROKEN, delay=2 * MINUTE),
            outcome("complete", Verb.COMPLETE, result={"n": 1}),
            outcome("late", Verb.FAIL, failure=BROKEN),
            outcome("busy", Verb.ACKNOWLEDGE_CANCEL),
            Outcome(job_id=987_654, token=1, verb=Verb.COMPLETE),
        ],
    )

    by_id = {answer.job_id: answer for answer in answers}
    assert len(answers) == len(by_id) == 9
    unknown = by_id.pop(987_654)
    assert (unknown.verdict, unknown.status) == (Verdict.LOST, None)
    found = {
        name: (by_id[lease.job_id].verdict, by_id[lease.job_id].status)
        for name, lease in leases.items()
    }
    assert found == {
        "complete": (Verdict.OK, JobStatus.COMPLETED),
        "fail": (Verdict.OK, JobStatus.QUEUED),
        "bury": (Verdict.OK, JobStatus.FAILED),
        "back": (Verdict.OK, JobStatus.QUEUED),
        "refund": (Verdict.OK, JobStatus.QUEUED),
        "stop": (Verdict.OK, JobStatus.CANCELLED),
        "late": (Verdict.LOST, JobStatus.COMPLETED),
        "busy": (Verdict.NOT_REQUESTED, JobStatus.RUNNING),
    }
    due = {name: record(records, lease.job_id).next_attempt_at for name, lease in leases.items()}
    assert (due["fail"], due["back"], due["refund"]) == (
        clock.now + 2 * MINUTE,
        clock.now + MINUTE,
        clock.now,
    )
    assert record(records, leases["complete"].job_id).result == {"n": 1}
    assert record(records, leases["refund"].job_id).attempt == 0


def test_a_settle_repeated_whole_is_answered_already(scene: Scene, records: Records) -> None:
    leases = [scene.lease() for _ in range(4)]
    outcomes = [
        Outcome(job_id=leases[0].job_id, token=1, verb=Verb.COMPLETE),
        Outcome(job_id=leases[1].job_id, token=1, verb=Verb.FAIL, failure=BROKEN),
        Outcome(job_id=leases[2].job_id, token=1, verb=Verb.RELEASE),
        Outcome(job_id=leases[3].job_id, token=1, verb=Verb.ACKNOWLEDGE_CANCEL),
    ]
    scene.cancel(leases[3])
    first = scene.control_plane.settle("ada", outcomes)
    before = [record(records, lease.job_id) for lease in leases]

    second = scene.control_plane.settle("ada", outcomes)

    assert {s.verdict for s in first} == {Verdict.OK}
    assert {s.verdict for s in second} == {Verdict.ALREADY}
    assert [record(records, lease.job_id) for lease in leases] == before


def test_a_thousand_leases_are_settled_in_one_call(scene: Scene, records: Records) -> None:
    scene.control_plane.enqueue_many([NewJob(queue=scene.queue, kind="work")] * 1000)
    leases = scene.control_plane.claim([scene.queue], "ada", max_jobs=1000)

    answers = scene.control_plane.settle(
        "ada",
        [Outcome(job_id=lease.job_id, token=lease.token, verb=Verb.COMPLETE) for lease in leases],
    )

    assert len(answers) == 1000
    assert {answer.verdict for answer in answers} == {Verdict.OK}
    assert records.jobs(status=JobStatus.RUNNING) == []


def test_the_last_twenty_attempts_of_each_job_are_kept(scene: Scene, records: Records) -> None:
    jobs = [scene.enqueue(max_attempts=30) for _ in range(2)]
    for _ in range(22):
        for job_id in jobs:
            scene.release(scene.lease(job_id=job_id), started=False)

    for job_id in jobs:
        assert {attempt.token for attempt in records.attempts(job_id)} == set(range(3, 23))
