"""Deciding about lapsed leases."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure.control_plane import ControlPlane
from tenure.records import Records
from tenure.values import JobStatus, NewJob, Swept, Verdict
from tests.contract.backends import Backend, Clock
from tests.contract.scenario import BROKEN, LEASE_FOR, MILLISECOND, MINUTE, SECOND, Scene


@pytest.fixture
def scene(control_plane: ControlPlane, clock: Clock) -> Scene:
    return Scene(control_plane, clock)


def test_a_sweep_with_nothing_lapsed_does_nothing(scene: Scene, records: Records) -> None:
    running, queued = scene.lease(), scene.enqueue()
    before = records.job(running.job_id), records.job(queued)

    assert scene.control_plane.sweep("broom") == []
    assert (records.job(running.job_id), records.job(queued)) == before


def test_a_sweep_says_what_became_of_each_lapsed_lease(
    scene: Scene, records: Records, clock: Clock
) -> None:
    plain, last = scene.lease(), scene.lease(max_attempts=1)
    slow = scene.lease(timeout=10 * SECOND)
    sealed, cancelled = scene.lease(), scene.lease()
    scene.seal(sealed)
    scene.cancel(cancelled)
    buffered = scene.lease_in_batch()
    scene.lapse()

    swept = {s.job_id: s for s in scene.control_plane.sweep("broom")}

    assert len(swept) == 6
    assert all(s.token == 1 for s in swept.values())
    assert {job_id: (s.outcome, s.status) for job_id, s in swept.items()} == {
        plain.job_id: ("lost", JobStatus.QUEUED),
        last.job_id: ("lost", JobStatus.FAILED),
        slow.job_id: ("timed out", JobStatus.QUEUED),
        sealed.job_id: ("healed", JobStatus.COMPLETED),
        cancelled.job_id: ("cancelled", JobStatus.CANCELLED),
        buffered.job_id: ("lost", JobStatus.QUEUED),
    }
    assert swept[buffered.job_id] == Swept(
        job_id=buffered.job_id,
        token=1,
        outcome="lost",
        status=JobStatus.QUEUED,
        next_attempt_at=clock.now,
    )
    for job_id, each in swept.items():
        job = records.job(job_id)
        assert job is not None
        queued = each.status is JobStatus.QUEUED
        assert each.next_attempt_at == (job.next_attempt_at if queued else None)
    assert scene.control_plane.sweep("broom") == []
    assert scene.control_plane.lapsed() == []


def test_the_attempt_row_is_keyed_by_the_lapsed_token(
    scene: Scene, records: Records, clock: Clock
) -> None:
    lease = scene.lease()
    claimed_at = clock.now
    scene.sweep(lease, JobStatus.QUEUED)

    job = records.job(lease.job_id)
    [row] = records.attempts(lease.job_id)
    assert job is not None
    assert (job.token, row.token, row.worker_id, row.attempt) == (2, 1, "ada", 1)
    assert (row.verb, row.outcome) == ("sweep", "lost")
    assert (row.started_at, row.ended_at) == (claimed_at, clock.now)


def test_the_oldest_claims_are_swept_first_up_to_the_limit(scene: Scene, clock: Clock) -> None:
    jobs = [scene.enqueue() for _ in range(4)]
    for job_id in reversed(jobs):
        scene.lease(job_id=job_id)
        clock.advance(SECOND)
    scene.lapse()

    first = scene.control_plane.sweep("broom", limit=3)
    rest = scene.control_plane.sweep("broom", limit=3)

    assert {s.job_id for s in first} == set(jobs[1:])
    assert [s.job_id for s in rest] == jobs[:1]


def test_of_claims_at_one_instant_the_lowest_ids_are_swept_first(scene: Scene) -> None:
    jobs = [scene.enqueue() for _ in range(5)]
    for job_id in reversed(jobs):
        scene.lease(job_id=job_id)
    scene.lapse()

    assert {s.job_id for s in scene.control_plane.sweep("broom", limit=2)} == set(jobs[:2])


@pytest.mark.parametrize(("attempt", "full"), [(1, 5), (2, 10), (3, 20)])
def test_backoff_doubles_from_the_base_and_stays_within_its_jitter(
    scene: Scene, clock: Clock, attempt: int, full: int
) -> None:
    waits: set[timedelta] = set()
    for verb in ("fail", "sweep") * 6:
        job_id = scene.enqueue(max_attempts=10)
        for _ in range(attempt - 1):
            scene.fail_with_delay(scene.lease(job_id=job_id), timedelta(0))
        lease = scene.lease(job_id=job_id)
        if verb == "fail":
            due = scene.control_plane.fail(job_id, "ada", lease.token, BROKEN).next_attempt_at
        else:
            due = scene.sweep(lease, JobStatus.QUEUED).next_attempt_at
        assert due is not None
        waits.add(due - clock.now)

    assert min(waits) >= 0.75 * full * SECOND
    assert max(waits) <= full * SECOND
    assert len(waits) > 1


def test_backoff_is_capped_and_its_thousandth_attempt_does_not_overflow(
    backend: Backend, clock: Clock
) -> None:
    scene = Scene(backend.control_plane, clock)
    far = timedelta(days=3653)
    shortest = timedelta(microseconds=1)
    caps = {
        scene.enqueue(max_attempts=1000): timedelta(hours=1),
        scene.enqueue(max_attempts=1000, retry_base=far, retry_cap=far): far,
        scene.enqueue(max_attempts=1000, retry_base=shortest, retry_cap=SECOND): SECOND,
    }
    for job_id, cap in caps.items():
        backend.set_attempt(job_id, 998)
        lease = scene.lease(job_id=job_id)
        assert lease.attempt == 999
        settled = scene.control_plane.fail(job_id, "ada", lease.token, BROKEN)
        assert settled.status is JobStatus.QUEUED
        assert settled.next_attempt_at is not None
        assert 0.75 * cap <= settled.next_attempt_at - clock.now <= cap


def test_a_base_above_the_cap_waits_for_the_cap(scene: Scene, clock: Clock) -> None:
    lease = scene.lease(retry_base=timedelta(hours=3), retry_cap=MINUTE)

    due = scene.control_plane.fail(lease.job_id, "ada", lease.token, BROKEN).next_attempt_at

    assert due is not None
    assert 0.75 * MINUTE <= due - clock.now <= MINUTE


def test_no_backoff_at_all_can_be_asked_for(scene: Scene, clock: Clock) -> None:
    lease = scene.lease(retry_base=timedelta(0))

    settled = scene.control_plane.fail(lease.job_id, "ada", lease.token, BROKEN)

    assert settled.next_attempt_at == clock.now


def test_a_lapse_one_millisecond_before_the_timeout_is_a_lost_lease(
    scene: Scene, records: Records, clock: Clock
) -> None:
    clock.set(clock.now.replace(microsecond=0))
    before, at = (scene.lease(timeout=LEASE_FOR + by) for by in (MILLISECOND, timedelta(0)))
    scene.lapse()

    outcomes = {s.job_id: s.outcome for s in scene.control_plane.sweep("broom")}

    assert outcomes == {before.job_id: "lost", at.job_id: "timed out"}
    errors = [records.job(lease.job_id).last_error for lease in (before, at)]  # type: ignore[union-attr]
    assert errors == ["lease lapsed", "timed out"]


def test_a_timeout_that_is_no_whole_millisecond_still_counts_as_timed_out(
    scene: Scene, clock: Clock
) -> None:
    clock.set(clock.now.replace(microsecond=700))
    lease = scene.lease(timeout=timedelta(seconds=10, microseconds=500))
    scene.lapse()

    [swept] = scene.control_plane.sweep("broom")

    assert (swept.job_id, swept.outcome) == (lease.job_id, "timed out")


def test_a_job_that_always_kills_its_worker_starts_exactly_max_attempts_times(
    scene: Scene, records: Records, clock: Clock
) -> None:
    """Claimed one at a time."""
    job_id = scene.enqueue(max_attempts=3)
    starts = 0
    for _ in range(10):
        clock.advance(timedelta(hours=1))
        scene.control_plane.sweep("broom")
        starts += len(scene.control_plane.claim([scene.queue], f"life {starts}"))

    job = records.job(job_id)
    assert starts == 3
    assert job is not None
    assert (job.status, job.attempt) == (JobStatus.FAILED, 3)
    assert job.last_error == "lease lapsed on the last attempt"
    assert job.finished_at is not None
    assert [job.job_id for job in records.jobs(status=JobStatus.FAILED)] == [job_id]
    assert [(a.token, a.attempt) for a in records.attempts(job_id)] == [(1, 1), (3, 2), (5, 3)]


def test_a_poison_job_is_stopped_and_its_fifty_neighbours_are_not_charged(
    scene: Scene, records: Records, clock: Clock
) -> None:
    """One start more than max_attempts, because the first came out of a batch.

    Whoever claims the poison job dies before it settles anything else of that claim.
    """
    jobs = [
        job.job_id
        for job in scene.control_plane.enqueue_many(
            [NewJob(queue=scene.queue, kind="work", max_attempts=3)] * 51
        )
    ]
    poison, starts = jobs[25], 0
    for life in range(10):
        clock.advance(MINUTE)
        scene.control_plane.sweep("broom")
        worker_id = f"life {life}"
        while leases := scene.control_plane.claim([scene.queue], worker_id, max_jobs=50):
            if any(lease.job_id == poison for lease in leases):
                starts += 1
                break
            for lease in leases:
                scene.complete(lease)

    ended = records.jobs(queue=scene.queue, limit=100)
    assert [job.job_id for job in ended if job.status is JobStatus.FAILED] == [poison]
    completed = [job for job in ended if job.status is JobStatus.COMPLETED]
    assert len(completed) == 50
    assert {job.attempt for job in completed} == {1}
    assert starts == 3 + 1


def test_a_buffered_neighbour_that_never_started_is_refunded_every_time(
    scene: Scene, records: Records, clock: Clock
) -> None:
    job_id = scene.enqueue(max_attempts=1)
    scene.enqueue()
    leases = scene.control_plane.claim([scene.queue], "ada", max_jobs=2, lease_for=LEASE_FOR)
    assert [lease.buffered for lease in leases] == [True, True]
    scene.lapse()
    scene.control_plane.sweep("broom")

    job = records.job(job_id)
    assert job is not None
    assert (job.status, job.attempt, job.solo) == (JobStatus.QUEUED, 0, True)
    again = scene.lease(job_id=job_id)
    assert (again.attempt, again.buffered, again.solo) == (1, False, True)


@pytest.mark.parametrize(
    ("report", "stays"),
    [("fail", False), ("started", False), ("unstarted", True), ("lapse", True)],
)
def test_solo_ends_when_the_handler_reports_and_not_before(
    scene: Scene, records: Records, report: str, stays: bool
) -> None:
    lease = scene.lease_in_batch()
    scene.sweep(lease, JobStatus.QUEUED)
    lease = scene.lease(job_id=lease.job_id)
    if report == "fail":
        scene.fail(lease)
    elif report == "lapse":
        scene.sweep(lease, JobStatus.QUEUED)
    else:
        scene.release(lease, started=report == "started")

    job = records.job(lease.job_id)
    assert job is not None
    assert job.solo is stays


def test_claiming_and_giving_back_for_ever_ends_at_the_token_limit(
    scene: Scene, records: Records
) -> None:
    """10 x max_attempts + 100."""
    job_id = scene.enqueue(max_attempts=1)
    for token in range(1, 110):
        lease = scene.lease(job_id=job_id)
        assert lease.token == token
        settled = scene.control_plane.release(job_id, "ada", token, started=False)
        assert settled.status is JobStatus.QUEUED

    last = scene.lease(job_id=job_id)
    settled = scene.control_plane.release(job_id, "ada", last.token, started=False)

    assert (settled.verdict, settled.status) == (Verdict.OK, JobStatus.FAILED)
    job = records.job(job_id)
    assert job is not None
    assert (job.last_error, job.token) == ("given back 110 times", 110)


def test_the_token_limit_ends_a_loop_of_lapsing_batches_too(scene: Scene, records: Records) -> None:
    """Also while attempts are left."""
    job_id = scene.enqueue(max_attempts=2)
    for _ in range(119):
        scene.release(scene.lease(job_id=job_id), started=False)
    scene.enqueue()
    leases = scene.control_plane.claim([scene.queue], "ada", max_jobs=2, lease_for=LEASE_FOR)
    assert [(lease.token, lease.buffered) for lease in leases] == [(120, True), (1, True)]
    scene.lapse()

    swept = {s.job_id: s for s in scene.control_plane.sweep("broom")}

    assert swept[job_id].status is JobStatus.FAILED
    job = records.job(job_id)
    assert job is not None
    assert job.last_error == "given back 120 times"


def failed_before(scene: Scene) -> int:
    """A queued job whose first attempt failed; its neighbour waits as well."""
    lease = scene.lease()
    scene.fail_with_delay(lease, 0 * MILLISECOND)
    scene.enqueue()
    return lease.job_id


def test_a_lapse_out_of_a_batch_says_nothing_about_the_last_error(
    scene: Scene, records: Records
) -> None:
    job_id = failed_before(scene)
    leases = scene.control_plane.claim([scene.queue], "ada", max_jobs=2, lease_for=LEASE_FOR)
    assert job_id in [lease.job_id for lease in leases if lease.buffered]
    scene.lapse()
    scene.control_plane.sweep("broom")

    job = records.job(job_id)
    assert job is not None
    assert (job.status, job.last_error) == (JobStatus.QUEUED, "ValueError: broken")


def test_a_job_that_a_sweep_heals_keeps_its_last_error(scene: Scene, records: Records) -> None:
    lease = scene.lease(job_id=failed_before(scene))
    scene.seal(lease)
    scene.sweep(lease, JobStatus.COMPLETED)

    job = records.job(lease.job_id)
    assert job is not None
    assert job.last_error == "ValueError: broken"


def test_a_retry_raises_the_token_limit_by_as_much_again(scene: Scene, records: Records) -> None:
    job_id = scene.enqueue(max_attempts=1)
    for _ in range(110):
        scene.release(scene.lease(job_id=job_id), started=False)
    assert scene.control_plane.retry(job_id).verdict is Verdict.OK

    job = records.job(job_id)
    assert job is not None
    limit = 110 + 10 * job.max_attempts + 100
    for token in range(111, limit):
        lease = scene.lease(job_id=job_id)
        assert lease.token == token
        settled = scene.control_plane.release(job_id, "ada", token, started=False)
        assert settled.status is JobStatus.QUEUED
    last = scene.lease(job_id=job_id)
    settled = scene.control_plane.release(job_id, "ada", last.token, started=False)
    assert (last.token, settled.status) == (limit, JobStatus.FAILED)


def test_the_last_twenty_attempts_of_a_job_are_kept(scene: Scene, records: Records) -> None:
    """The row does not grow with its retries."""
    job_id = scene.enqueue(max_attempts=30)
    for _ in range(25):
        scene.fail_with_delay(scene.lease(job_id=job_id), timedelta(0))

    assert [a.token for a in records.attempts(job_id)] == list(range(6, 26))


def test_a_key_taken_by_a_job_in_flight_never_stops_a_sweep(scene: Scene, records: Records) -> None:
    """Live is queued and running, so a key has one job whatever is swept."""
    keyed = scene.lease(dedup_key="k")
    others = [scene.lease() for _ in range(20)]
    again = scene.control_plane.enqueue(scene.queue, "work", dedup_key="k")
    assert not again.created
    scene.lapse()

    swept = scene.control_plane.sweep("broom")

    assert {s.job_id for s in swept} == {keyed.job_id, *(lease.job_id for lease in others)}
    assert {s.status for s in swept} == {JobStatus.QUEUED}
    job = records.job(keyed.job_id)
    assert job is not None
    assert job.dedup_key == "k"


def test_many_sweepers_are_harmless(backend: Backend) -> None:
    scene = Scene(backend.control_plane, backend.clock)
    leases = [scene.lease() for _ in range(6)]
    scene.lapse()
    one, other = backend.another(), backend.another()

    swept = [*one.sweep("one", limit=4), *other.sweep("other", limit=4), *one.sweep("one")]

    assert sorted(s.job_id for s in swept) == sorted(lease.job_id for lease in leases)
    for lease in leases:
        job = backend.records.job(lease.job_id)
        assert job is not None
        assert (job.token, job.attempt) == (2, 1)
