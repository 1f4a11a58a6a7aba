"""Getting a lease: who may have which job, and in what order."""

from __future__ import annotations

import itertools
import random
from datetime import datetime, timedelta
from typing import Any

import pytest

from tenure.control_plane import ControlPlane
from tenure.records import Records
from tenure.values import JobLease, JobStatus, NewJob
from tests.contract.backends import Backend, Clock
from tests.contract.scenario import BROKEN, LEASE_FOR, MINUTE, SECOND, Scene


def ids(leases: list[JobLease]) -> list[int]:
    return [lease.job_id for lease in leases]


def test_a_lease_says_everything_about_the_loan(control_plane: ControlPlane, clock: Clock) -> None:
    job_id = control_plane.enqueue(
        "mail",
        "send",
        {"to": "ada"},
        priority=3,
        max_attempts=2,
        timeout=MINUTE,
        meta={"trace": "00-1"},
    ).job_id
    created_at = clock.now
    clock.advance(SECOND)

    [lease] = control_plane.claim(["mail"], "ada", lease_for=10 * SECOND)

    assert lease == JobLease(
        job_id=job_id,
        token=1,
        worker_id="ada",
        lease_expires_at=whole_milliseconds(clock, 10 * SECOND),
        queue="mail",
        kind="send",
        payload={"to": "ada"},
        priority=3,
        attempt=1,
        max_attempts=2,
        timeout=MINUTE,
        buffered=False,
        solo=False,
        progress=None,
        meta={"trace": "00-1"},
        created_at=created_at,
        last_error=None,
    )


def whole_milliseconds(clock: Clock, ahead: timedelta) -> datetime:
    end = clock.now + ahead
    return end.replace(microsecond=end.microsecond // 1000 * 1000)


def test_claim_and_claim_job_lend_on_the_same_terms(
    control_plane: ControlPlane, records: Records, clock: Clock
) -> None:
    one, other = (control_plane.enqueue("mail", "send").job_id for _ in range(2))

    [claimed] = control_plane.claim(["mail"], "ada")
    swapped = control_plane.claim_job(other, "ada")

    assert swapped is not None
    assert claimed.job_id == one
    first, second = records.job(one), records.job(other)
    assert first is not None
    assert second is not None
    assert (first.status, first.worker_id, first.claimed_at, first.lease_expires_at) == (
        JobStatus.RUNNING,
        "ada",
        clock.now,
        claimed.lease_expires_at,
    )
    assert (second.status, second.worker_id, second.claimed_at, second.lease_expires_at) == (
        JobStatus.RUNNING,
        "ada",
        clock.now,
        claimed.lease_expires_at,
    )
    assert (swapped.token, swapped.attempt, swapped.buffered) == (1, 1, False)


def test_a_later_lease_brings_the_progress_and_the_error_of_the_attempt_before(
    control_plane: ControlPlane, clock: Clock
) -> None:
    scene = Scene(control_plane, clock)
    first = scene.lease()
    control_plane.update_owned(first.job_id, "ada", first.token, progress={"page": 7})
    scene.fail(first)
    clock.advance(MINUTE)

    [again] = control_plane.claim([scene.queue], "bob")

    assert (again.progress, again.last_error) == ({"page": 7}, "ValueError: broken")
    assert (again.token, again.attempt) == (2, 2)


def test_an_empty_claim_is_an_empty_list(control_plane: ControlPlane) -> None:
    assert control_plane.claim(["mail"], "ada", max_jobs=10) == []
    assert control_plane.next_eligible_job_id(["mail"]) is None


def test_jobs_come_by_queue_order_then_priority_then_due_time_then_id(
    control_plane: ControlPlane, clock: Clock
) -> None:
    queues = ["late", "early"]
    places = list(itertools.product(queues, (0, 5, 9), (0, 1, 2))) * 2
    random.Random(7).shuffle(places)
    added = control_plane.enqueue_many(
        [
            NewJob(queue=queue, kind="send", priority=priority, delay=wait * SECOND)
            for queue, priority, wait in places
        ]
    )
    wanted = sorted(
        (queues.index(queue), priority, wait, job.job_id)
        for (queue, priority, wait), job in zip(places, added, strict=True)
    )
    clock.advance(MINUTE)

    first = control_plane.claim(queues, "ada", max_jobs=7)
    rest = control_plane.claim(queues, "ada", max_jobs=100)

    assert ids(first + rest) == [job_id for *_, job_id in wanted]


def test_one_by_one_the_jobs_come_in_the_same_order(
    control_plane: ControlPlane, clock: Clock
) -> None:
    low = control_plane.enqueue("mail", "send", priority=9).job_id
    later = control_plane.enqueue("mail", "send", delay=SECOND).job_id
    plain = control_plane.enqueue("mail", "send").job_id
    twin = control_plane.enqueue("mail", "send").job_id
    high = control_plane.enqueue("mail", "send", priority=0, delay=2 * SECOND).job_id
    other = control_plane.enqueue("print", "send", priority=0).job_id
    clock.advance(MINUTE)

    read, claimed = [], []
    for _ in range(6):
        read.append(control_plane.next_eligible_job_id(["mail", "print"]))
        claimed += ids(control_plane.claim(["mail", "print"], "ada"))

    assert claimed == [high, plain, twin, later, low, other]
    assert read == claimed


def test_the_same_queue_given_twice_counts_once(control_plane: ControlPlane) -> None:
    jobs = [control_plane.enqueue("mail", "send").job_id for _ in range(3)]

    assert ids(control_plane.claim(["mail", "mail"], "ada", max_jobs=2)) == jobs[:2]
    assert ids(control_plane.claim(["mail", "mail", "mail"], "ada", max_jobs=2)) == jobs[2:]


def test_a_claim_takes_no_more_than_asked_and_nothing_runs_unreturned(
    control_plane: ControlPlane, records: Records
) -> None:
    control_plane.enqueue_many([NewJob(kind="send")] * 200)

    one = control_plane.claim(["default"], "ada", max_jobs=1)
    five = control_plane.claim(["default"], "ada", max_jobs=5)

    running = records.jobs(status=JobStatus.RUNNING, limit=1000)
    assert (len(one), len(five)) == (1, 5)
    assert sorted(job.job_id for job in running) == sorted(ids(one + five))


def test_queues_that_were_not_asked_for_are_left_alone(control_plane: ControlPlane) -> None:
    control_plane.enqueue("print", "send")

    assert control_plane.claim(["mail", "Print", "prints"], "ada", max_jobs=5) == []


def test_a_job_in_backoff_is_invisible_until_it_is_due(
    control_plane: ControlPlane, clock: Clock
) -> None:
    scene = Scene(control_plane, clock)
    lease = scene.lease()
    due = control_plane.fail(
        lease.job_id, "ada", lease.token, BROKEN, delay=10 * SECOND
    ).next_attempt_at
    assert due == clock.now + 10 * SECOND

    clock.advance(10 * SECOND - timedelta(microseconds=1))
    assert control_plane.next_eligible_job_id([scene.queue]) is None
    assert control_plane.claim([scene.queue], "ada", max_jobs=5) == []
    assert control_plane.claim_job(lease.job_id, "ada") is None
    clock.advance(timedelta(microseconds=1))
    assert control_plane.next_eligible_job_id([scene.queue]) == lease.job_id
    assert ids(control_plane.claim([scene.queue], "ada")) == [lease.job_id]


def test_a_delayed_job_is_invisible_until_it_is_due(
    control_plane: ControlPlane, clock: Clock
) -> None:
    job_id = control_plane.enqueue("mail", "send", delay=MINUTE).job_id

    clock.advance(MINUTE - timedelta(microseconds=1))
    assert control_plane.next_eligible_job_id(["mail"]) is None
    assert control_plane.claim(["mail"], "ada") == []
    assert control_plane.claim_job(job_id, "ada") is None
    clock.advance(timedelta(microseconds=1))
    assert ids(control_plane.claim(["mail"], "ada")) == [job_id]


def test_a_running_job_cannot_be_claimed_again(control_plane: ControlPlane, clock: Clock) -> None:
    """Not while its lease lasts, nor after: a lapsed lease is for the sweep or for reclaim."""
    scene = Scene(control_plane, clock)
    lease = scene.lease()

    for _ in ("fresh", "lapsed"):
        assert control_plane.claim_job(lease.job_id, "bob") is None
        assert control_plane.claim_job(lease.job_id, "ada") is None
        assert control_plane.claim([scene.queue], "bob", max_jobs=2) == []
        assert control_plane.next_eligible_job_id([scene.queue]) is None
        scene.lapse()


def test_an_ended_job_is_never_claimed_again(control_plane: ControlPlane, clock: Clock) -> None:
    scene = Scene(control_plane, clock)
    completed = scene.lease()
    scene.complete(completed)
    cancelled = scene.enqueue()
    control_plane.cancel(cancelled)

    assert control_plane.claim([scene.queue], "ada", max_jobs=5) == []
    assert control_plane.claim_job(completed.job_id, "ada") is None
    assert control_plane.claim_job(cancelled, "ada") is None


def test_a_paused_queue_gives_nothing_and_the_next_one_is_asked(
    control_plane: ControlPlane,
) -> None:
    paused = control_plane.enqueue("mail", "send").job_id
    other = control_plane.enqueue("print", "send").job_id
    control_plane.pause("mail")

    assert control_plane.next_eligible_job_id(["mail", "print"]) == other
    assert control_plane.claim_job(paused, "ada") is None
    assert ids(control_plane.claim(["mail", "print"], "ada", max_jobs=5)) == [other]
    control_plane.resume("mail")
    assert control_plane.next_eligible_job_id(["mail", "print"]) == paused
    assert ids(control_plane.claim(["mail"], "ada")) == [paused]


def test_different_workers_get_different_jobs(backend: Backend) -> None:
    jobs = {backend.control_plane.enqueue("mail", "send").job_id for _ in range(4)}
    ada, bob = backend.another(), backend.another()

    got = [
        *ids(ada.claim(["mail"], "ada")),
        *ids(bob.claim(["mail"], "bob", max_jobs=2)),
        *ids(ada.claim(["mail"], "ada", max_jobs=5)),
    ]

    assert len(got) == 4
    assert set(got) == jobs
    assert bob.claim(["mail"], "bob") == []


def test_of_two_workers_with_the_same_candidate_one_gets_it_and_the_other_spends_nothing(
    backend: Backend,
) -> None:
    backend.control_plane.enqueue("mail", "send")
    ada, bob = backend.another(), backend.another()
    candidate = ada.next_eligible_job_id(["mail"])
    assert candidate is not None
    assert candidate == bob.next_eligible_job_id(["mail"])

    won = ada.claim_job(candidate, "ada")
    lost = bob.claim_job(candidate, "bob")

    assert won is not None
    assert lost is None
    job = backend.records.job(candidate)
    assert job is not None
    assert (job.worker_id, job.attempt, job.token) == ("ada", 1, 1)


def test_reading_the_candidate_reserves_nothing(
    control_plane: ControlPlane, records: Records
) -> None:
    job_id = control_plane.enqueue("mail", "send").job_id
    before = records.job(job_id)

    for _ in range(3):
        assert control_plane.next_eligible_job_id(["mail"]) == job_id

    assert records.job(job_id) == before


def test_a_single_claim_is_not_buffered_and_a_larger_one_is_whatever_it_found(
    control_plane: ControlPlane, records: Records
) -> None:
    first, second, third = (control_plane.enqueue("mail", "send").job_id for _ in range(3))

    single = control_plane.claim(["mail"], "ada", max_jobs=1)
    swapped = control_plane.claim_job(second, "ada")
    larger = control_plane.claim(["mail"], "ada", max_jobs=5)

    assert [(lease.job_id, lease.buffered) for lease in single] == [(first, False)]
    assert swapped is not None
    assert not swapped.buffered
    assert [(lease.job_id, lease.buffered) for lease in larger] == [(third, True)]
    assert [records.job(i).buffered for i in (first, second, third)] == [False, False, True]  # type: ignore[union-attr]


def made_solo(scene: Scene, **options: Any) -> int:
    """A queued job whose batch's lease lapsed: it is suspected now."""
    lease = scene.lease_in_batch(**options)
    scene.sweep(lease, JobStatus.QUEUED)
    return lease.job_id


def test_solo_jobs_come_one_per_claim_unbuffered_and_after_the_others_of_their_priority(
    control_plane: ControlPlane, clock: Clock
) -> None:
    scene = Scene(control_plane, clock)
    suspects = [made_solo(scene), made_solo(scene)]
    clock.advance(SECOND)
    plain = [scene.enqueue(), scene.enqueue()]
    lower = scene.enqueue(priority=6)

    first = control_plane.claim([scene.queue], "ada", max_jobs=10)
    second = control_plane.claim([scene.queue], "ada", max_jobs=10)

    assert ids(first) == [*plain, suspects[0], lower]
    assert [lease.buffered for lease in first] == [True, True, False, True]
    assert [lease.solo for lease in first] == [False, False, True, False]
    assert ids(second) == [suspects[1]]
    assert (second[0].buffered, second[0].solo) == (False, True)


def test_a_solo_job_of_a_higher_priority_comes_first(
    control_plane: ControlPlane, clock: Clock
) -> None:
    scene = Scene(control_plane, clock)
    suspect = made_solo(scene, priority=4)
    plain = scene.enqueue()

    assert control_plane.next_eligible_job_id([scene.queue]) == suspect
    assert ids(control_plane.claim([scene.queue], "ada", max_jobs=2)) == [suspect, plain]


def test_one_solo_job_per_claim_counts_over_all_queues_and_priorities(
    control_plane: ControlPlane, clock: Clock
) -> None:
    scene, other = Scene(control_plane, clock), Scene(control_plane, clock)
    suspects = [made_solo(scene), made_solo(scene, priority=2), made_solo(other)]

    taken = []
    for _ in range(3):
        [lease] = control_plane.claim([scene.queue, other.queue], "ada", max_jobs=10)
        taken.append(lease.job_id)

    assert taken == [suspects[1], suspects[0], suspects[2]]


@pytest.mark.parametrize("max_jobs", [1, 2])
def test_a_solo_job_of_a_later_queue_is_not_given_beyond_the_number_asked_for(
    control_plane: ControlPlane, clock: Clock, max_jobs: int
) -> None:
    scene, other = Scene(control_plane, clock), Scene(control_plane, clock)
    made_solo(other)
    wanted = [scene.enqueue() for _ in range(max_jobs)]

    given = control_plane.claim([scene.queue, other.queue], "ada", max_jobs=max_jobs)

    assert ids(given) == wanted


def test_a_worker_that_has_a_solo_job_is_given_no_other(
    control_plane: ControlPlane, clock: Clock
) -> None:
    scene = Scene(control_plane, clock)
    suspect = made_solo(scene)
    plain = scene.enqueue()

    without = control_plane.claim([scene.queue], "ada", max_jobs=10, solo=False)
    alone = control_plane.claim([scene.queue], "ada", solo=False)
    then = control_plane.claim([scene.queue], "bob")

    assert ids(without) == [plain]
    assert alone == []
    assert ids(then) == [suspect]


def test_leases_of_one_claim_differ_only_by_their_jobs(
    control_plane: ControlPlane, clock: Clock
) -> None:
    control_plane.enqueue("mail", "send")
    control_plane.enqueue("mail", "send", timeout=timedelta(seconds=5, microseconds=900))

    plain, bounded = control_plane.claim(["mail"], "ada", max_jobs=2, lease_for=LEASE_FOR)

    assert plain.lease_expires_at == whole_milliseconds(clock, LEASE_FOR)
    assert bounded.lease_expires_at == whole_milliseconds(
        clock, timedelta(seconds=5, microseconds=900)
    )


@pytest.mark.parametrize("max_jobs", [1, 2])
def test_a_thousand_queues_may_be_asked_at_once(control_plane: ControlPlane, max_jobs: int) -> None:
    last = control_plane.enqueue("queue 999", "send").job_id

    leases = control_plane.claim([f"queue {i}" for i in range(1000)], "ada", max_jobs=max_jobs)

    assert ids(leases) == [last]


def test_the_next_eligible_job_is_no_solo_job_while_another_is_due(
    control_plane: ControlPlane, clock: Clock
) -> None:
    scene = Scene(control_plane, clock)
    scene.sweep(scene.lease_in_batch(), JobStatus.QUEUED)
    clock.advance(SECOND)
    job_id = scene.enqueue()

    assert control_plane.next_eligible_job_id([scene.queue]) == job_id
    assert ids(control_plane.claim([scene.queue], "bob")) == [job_id]


def test_a_job_is_had_by_its_id_while_another_queue_is_paused(
    control_plane: ControlPlane, clock: Clock
) -> None:
    scene = Scene(control_plane, clock)
    control_plane.pause("another queue")
    assert scene.lease().worker_id == "ada"
