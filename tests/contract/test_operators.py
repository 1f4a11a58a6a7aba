"""What an operator does to jobs and queues from outside."""

from __future__ import annotations

import pytest

from tenure.control_plane import ControlPlane
from tenure.errors import JobUnknown
from tenure.records import JobRecord, Records
from tenure.values import JobAnswer, JobStatus, LeaseRenewal, QueueAnswer, Verdict
from tests.contract.backends import Clock
from tests.contract.scenario import BROKEN, BROKEN_FOR_GOOD, MINUTE, SECOND, Scene


@pytest.fixture
def scene(control_plane: ControlPlane, clock: Clock) -> Scene:
    return Scene(control_plane, clock)


def record(records: Records, job_id: int) -> JobRecord:
    job = records.job(job_id)
    assert job is not None
    return job


def test_a_queued_job_is_cancelled_at_once(scene: Scene, records: Records, clock: Clock) -> None:
    job_id = scene.enqueue(payload=[1])
    clock.advance(SECOND)

    answer = scene.control_plane.cancel(job_id)

    assert answer == JobAnswer(
        job_id=job_id, verdict=Verdict.OK, status=JobStatus.CANCELLED, holder_pid=None
    )
    job = record(records, job_id)
    assert (job.status, job.shade, job.finished_at) == (
        JobStatus.CANCELLED,
        "cancelled",
        clock.now,
    )
    assert (job.token, job.worker_id, job.payload) == (0, None, [1])
    assert records.attempts(job_id) == []


def test_a_running_job_is_asked_to_stop_and_its_renewal_says_so(
    scene: Scene, records: Records
) -> None:
    lease = scene.lease()
    plane = scene.control_plane
    assert not plane.cancel_requested(lease.job_id)

    answer = plane.cancel(lease.job_id)

    assert (answer.verdict, answer.status) == (Verdict.OK, JobStatus.RUNNING)
    assert plane.cancel_requested(lease.job_id)
    [renewal] = plane.renew("ada", [(lease.job_id, lease.token)])
    assert (renewal.outcome, renewal.cancel_requested) == (LeaseRenewal.RENEWED, True)
    assert plane.cancel(lease.job_id).verdict is Verdict.ALREADY
    assert plane.cancel_requested(lease.job_id)


def test_cancel_requested_is_false_for_a_job_that_does_not_run(scene: Scene) -> None:
    plane = scene.control_plane
    queued = scene.enqueue()
    ended = scene.lease()
    scene.cancel(ended)
    scene.acknowledge(ended)

    assert not plane.cancel_requested(queued)
    assert not plane.cancel_requested(ended.job_id)
    assert not plane.cancel_requested(ended.job_id + 1_000_000)


@pytest.mark.parametrize("end", ["fail", "fail later", "started", "unstarted", "lapse", "handoff"])
def test_an_accepted_cancellation_is_undone_by_nothing(
    scene: Scene, records: Records, end: str
) -> None:
    """Neither by a retry, a release, a lapse nor a handoff."""
    lease = scene.lease(dedup_key="k")
    scene.cancel(lease)

    if end == "fail":
        scene.fail(lease)
    elif end == "fail later":
        scene.fail_with_delay(lease, MINUTE)
    elif end in ("started", "unstarted"):
        scene.release(lease, started=end == "started")
    elif end == "lapse":
        scene.sweep(lease, JobStatus.CANCELLED)
    else:
        handed = scene.reclaim(lease)
        assert scene.control_plane.cancel_requested(lease.job_id)
        again = scene.reclaim(handed, "cleo")
        scene.release(again, started=False)

    job = record(records, lease.job_id)
    assert job.status is JobStatus.CANCELLED
    assert scene.control_plane.claim([scene.queue], "ada", max_jobs=5) == []
    assert scene.control_plane.enqueue(scene.queue, "work", dedup_key="k").created


def test_a_completion_that_raced_an_accepted_cancellation_loses(
    scene: Scene, records: Records
) -> None:
    lease = scene.lease()
    scene.cancel(lease)

    late = scene.control_plane.complete(lease.job_id, "ada", lease.token, {"done": True})

    assert (late.verdict, late.status) == (Verdict.CANCEL_REQUESTED, JobStatus.RUNNING)
    job = record(records, lease.job_id)
    assert (job.status, job.result) == (JobStatus.RUNNING, None)
    ended = scene.control_plane.acknowledge_cancel(lease.job_id, "ada", lease.token)
    assert (ended.verdict, ended.status) == (Verdict.OK, JobStatus.CANCELLED)


def test_a_cancellation_that_came_after_the_completion_is_refused(
    scene: Scene, records: Records
) -> None:
    lease = scene.lease()
    scene.complete(lease)
    before = record(records, lease.job_id)

    answer = scene.control_plane.cancel(lease.job_id)

    assert (answer.verdict, answer.status) == (Verdict.REFUSED, JobStatus.COMPLETED)
    assert record(records, lease.job_id) == before


def test_the_error_of_a_fail_that_ends_cancelled_is_kept_with_its_attempt(
    scene: Scene, records: Records
) -> None:
    lease = scene.lease()
    scene.cancel(lease)
    scene.fail(lease)

    [row] = records.attempts(lease.job_id)
    assert (row.verb, row.outcome) == ("fail", "cancelled")
    assert (row.error_type, row.message) == ("ValueError", "broken")


def test_a_retry_queues_the_same_job_with_its_token_and_attempts_more(
    scene: Scene, records: Records, clock: Clock
) -> None:
    lease = scene.lease(payload=[1], dedup_key="k", priority=3, timeout=MINUTE, meta={"m": 1})
    created_at = clock.now
    scene.control_plane.update_owned(lease.job_id, "ada", lease.token, progress=7)
    scene.fail(lease, BROKEN_FOR_GOOD)
    clock.advance(SECOND)

    answer = scene.control_plane.retry(lease.job_id, attempts=4)

    assert answer == JobAnswer(
        job_id=lease.job_id, verdict=Verdict.OK, status=JobStatus.QUEUED, holder_pid=None
    )
    job = record(records, lease.job_id)
    assert (job.status, job.token, job.attempt, job.max_attempts) == (JobStatus.QUEUED, 1, 1, 5)
    assert (job.next_attempt_at, job.finished_at, job.result) == (clock.now, None, None)
    assert (job.payload, job.dedup_key, job.priority, job.timeout, job.meta, job.progress) == (
        [1],
        "k",
        3,
        MINUTE,
        {"m": 1},
        7,
    )
    assert (job.created_at, job.shade) == (created_at, "retrying")
    assert len(records.attempts(lease.job_id)) == 1
    again = scene.lease(job_id=lease.job_id)
    assert (again.token, again.attempt, again.max_attempts) == (2, 2, 5)


def test_a_retry_of_a_cancelled_job_runs_as_if_nobody_had_cancelled_it(
    scene: Scene, records: Records
) -> None:
    lease = scene.lease()
    scene.cancel(lease)
    scene.acknowledge(lease)

    scene.control_plane.retry(lease.job_id)

    assert not record(records, lease.job_id).cancel_requested
    again = scene.lease(job_id=lease.job_id)
    done = scene.control_plane.complete(again.job_id, "ada", again.token, {"done": True})
    assert (done.verdict, done.status) == (Verdict.OK, JobStatus.COMPLETED)


def test_a_retry_whose_key_is_taken_changes_nothing(
    scene: Scene, records: Records, clock: Clock
) -> None:
    lease = scene.lease(dedup_key="k")
    scene.fail(lease, BROKEN_FOR_GOOD)
    taker = scene.enqueue(dedup_key="k")
    before = record(records, lease.job_id)

    refused = scene.control_plane.retry(lease.job_id)

    assert (refused.verdict, refused.status) == (Verdict.DUPLICATE, JobStatus.FAILED)
    assert record(records, lease.job_id) == before
    scene.control_plane.cancel(taker)
    assert scene.control_plane.retry(lease.job_id).verdict is Verdict.OK
    assert not scene.control_plane.enqueue(scene.queue, "work", dedup_key="k").created


def test_retries_add_attempts_each_time(scene: Scene, records: Records) -> None:
    job_id = scene.enqueue(max_attempts=1)
    for round_ in range(1, 4):
        lease = scene.lease(job_id=job_id)
        settled = scene.control_plane.fail(job_id, "ada", lease.token, BROKEN)
        assert settled.status is JobStatus.FAILED
        assert record(records, job_id).attempt == round_
        assert scene.control_plane.retry(job_id).verdict is Verdict.OK
    assert record(records, job_id).max_attempts == 4


def test_an_unknown_job_is_an_error_for_an_operator_and_lost_for_a_worker(
    control_plane: ControlPlane,
) -> None:
    with pytest.raises(JobUnknown, match="987654"):
        control_plane.cancel(987_654)
    with pytest.raises(JobUnknown, match="987654"):
        control_plane.retry(987_654)

    settled = control_plane.complete(987_654, "ada", 1)
    assert (settled.verdict, settled.status) == (Verdict.LOST, None)


def test_pause_and_resume_answer_what_they_did(
    scene: Scene, records: Records, clock: Clock
) -> None:
    plane, queue = scene.control_plane, scene.queue
    scene.enqueue()
    paused_at = clock.now

    def answer(verdict: Verdict, *, paused: bool) -> QueueAnswer:
        return QueueAnswer(
            queue=queue, verdict=verdict, paused_at=paused_at if paused else None, holder_pid=None
        )

    assert plane.resume(queue) == answer(Verdict.ALREADY, paused=False)
    assert plane.pause(queue) == answer(Verdict.OK, paused=True)
    clock.advance(SECOND)
    assert plane.pause(queue) == answer(Verdict.ALREADY, paused=True)
    [listed] = records.queues()
    assert (listed.queue, listed.paused_at) == (queue, paused_at)
    assert plane.resume(queue) == answer(Verdict.OK, paused=False)
    assert plane.resume(queue) == answer(Verdict.ALREADY, paused=False)


def test_a_queue_that_nobody_ever_used_can_be_paused_ahead(scene: Scene, records: Records) -> None:
    assert scene.control_plane.pause(scene.queue).verdict is Verdict.OK
    job_id = scene.enqueue()

    assert scene.control_plane.claim([scene.queue], "ada") == []
    scene.control_plane.resume(scene.queue)
    assert [x.job_id for x in scene.control_plane.claim([scene.queue], "ada")] == [job_id]


def test_jobs_that_run_go_on_in_a_paused_queue(scene: Scene, records: Records) -> None:
    completing, failing, lapsing = scene.lease(), scene.lease(), scene.lease()
    scene.control_plane.pause(scene.queue)

    [renewal] = scene.control_plane.renew("ada", [(failing.job_id, failing.token)])
    done = scene.control_plane.complete(completing.job_id, "ada", completing.token)
    failed = scene.control_plane.fail(failing.job_id, "ada", failing.token, BROKEN)
    swept = scene.sweep(lapsing, JobStatus.QUEUED)

    assert renewal.outcome is LeaseRenewal.RENEWED
    assert (done.verdict, failed.verdict, swept.outcome) == (Verdict.OK, Verdict.OK, "lost")
    scene.clock.advance(MINUTE)
    assert scene.control_plane.claim([scene.queue], "ada", max_jobs=5) == []


def test_a_queued_job_of_a_paused_queue_can_be_cancelled(scene: Scene) -> None:
    job_id = scene.enqueue()
    scene.control_plane.pause(scene.queue)

    assert scene.control_plane.cancel(job_id).status is JobStatus.CANCELLED


def test_queues_are_counted_by_shade(scene: Scene, records: Records, clock: Clock) -> None:
    retrying = scene.lease()
    scene.fail(retrying)
    clock.advance(MINUTE)
    due_at = clock.now
    scene.enqueue()
    scene.enqueue()
    scene.enqueue(delay=MINUTE)
    scene.lease()
    ended = scene.lease()
    scene.complete(ended)

    [queue] = records.queues()

    assert (queue.queued, queue.scheduled, queue.retrying, queue.running) == (2, 1, 1, 1)
    assert queue.oldest_due_at is not None
    assert queue.oldest_due_at < due_at
    shades = [job.shade for job in records.jobs(queue=scene.queue)]
    assert sorted(shades) == sorted(
        ["retrying", "queued", "queued", "scheduled", "running", "completed"]
    )


def test_a_queue_is_paused_and_resumed_beside_another(
    scene: Scene, records: Records, clock: Clock
) -> None:
    plane, other, queue = scene.control_plane, f"{scene.queue} too", scene.queue
    plane.pause(other)
    clock.advance(SECOND)
    plane.pause(queue)
    assert plane.pause(queue).paused_at == clock.now

    assert plane.resume(queue).verdict is Verdict.OK
    assert plane.resume(queue).verdict is Verdict.ALREADY

    paused = {listed.queue for listed in records.queues() if listed.paused_at is not None}
    assert paused == {other}
