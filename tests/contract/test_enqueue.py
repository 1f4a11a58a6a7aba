"""Adding jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tenure.control_plane import ControlPlane
from tenure.records import JobRecord, Records
from tenure.values import Enqueued, JobStatus, NewJob
from tests.contract.backends import Backend, Clock
from tests.contract.scenario import BROKEN, BROKEN_FOR_GOOD, MINUTE, SECOND, Scene


def record(records: Records, job_id: int) -> JobRecord:
    job = records.job(job_id)
    assert job is not None
    return job


def test_a_new_job_has_the_documented_defaults(
    control_plane: ControlPlane, records: Records, clock: Clock
) -> None:
    added = control_plane.enqueue("mail", "send")

    assert added.created
    assert records.job(added.job_id) == JobRecord(
        job_id=added.job_id,
        queue="mail",
        kind="send",
        status=JobStatus.QUEUED,
        shade="queued",
        priority=5,
        attempt=0,
        max_attempts=5,
        token=0,
        worker_id=None,
        next_attempt_at=clock.now,
        lease_expires_at=None,
        claimed_at=None,
        created_at=clock.now,
        finished_at=None,
        cancel_requested=False,
        sealed_at=None,
        buffered=False,
        solo=False,
        dedup_key=None,
        timeout=None,
        payload=None,
        result=None,
        progress=None,
        meta=None,
        last_error=None,
    )


GIVEN: dict[str, Any] = {
    "payload": {"to": ["ada", None], "n": 1},
    "priority": 0,
    "max_attempts": 2,
    "dedup_key": "once",
    "timeout": timedelta(minutes=7),
    "meta": {"trace": "00-1"},
}


def test_a_job_keeps_what_was_given(control_plane: ControlPlane, records: Records) -> None:
    added = control_plane.enqueue("mail", "send", **GIVEN)

    job = record(records, added.job_id)
    assert {name: getattr(job, name) for name in GIVEN} == GIVEN


def test_a_job_of_a_batch_keeps_what_was_given(
    control_plane: ControlPlane, records: Records, clock: Clock
) -> None:
    [one, other] = control_plane.enqueue_many(
        [NewJob(queue="mail", kind="send", delay=MINUTE, **GIVEN), NewJob(kind="print")]
    )

    job = record(records, one.job_id)
    assert {name: getattr(job, name) for name in GIVEN} == GIVEN
    assert (job.queue, job.kind, job.next_attempt_at) == ("mail", "send", clock.now + MINUTE)
    plain = record(records, other.job_id)
    assert (plain.queue, plain.kind, plain.payload) == ("default", "print", None)
    assert (plain.priority, plain.max_attempts, plain.next_attempt_at) == (5, 5, clock.now)


def test_the_retry_bounds_of_a_job_are_kept(
    control_plane: ControlPlane, records: Records, clock: Clock
) -> None:
    bounds: dict[str, Any] = {"retry_base": 100 * SECOND, "retry_cap": 150 * SECOND}
    single = control_plane.enqueue("mail", "send", **bounds)
    [batched] = control_plane.enqueue_many([NewJob(queue="mail", kind="send", **bounds)])

    for job_id in (single.job_id, batched.job_id):
        lease = control_plane.claim_job(job_id, "ada")
        assert lease is not None
        from_base = control_plane.fail(job_id, "ada", lease.token, BROKEN)
        assert from_base.next_attempt_at is not None
        assert 75 * SECOND <= from_base.next_attempt_at - clock.now <= 100 * SECOND
    clock.advance(100 * SECOND)
    for job_id in (single.job_id, batched.job_id):
        lease = control_plane.claim_job(job_id, "ada")
        assert lease is not None
        from_cap = control_plane.fail(job_id, "ada", lease.token, BROKEN)
        assert from_cap.next_attempt_at is not None
        assert 112.5 * SECOND <= from_cap.next_attempt_at - clock.now <= 150 * SECOND


def test_a_delayed_job_is_due_after_its_delay(
    control_plane: ControlPlane, records: Records, clock: Clock
) -> None:
    added = control_plane.enqueue("mail", "send", delay=90 * SECOND)

    job = record(records, added.job_id)
    assert (job.next_attempt_at, job.shade) == (clock.now + 90 * SECOND, "scheduled")


def test_a_run_at_in_the_future_is_kept_to_the_microsecond(
    control_plane: ControlPlane, records: Records, clock: Clock
) -> None:
    later = clock.now + timedelta(days=3, microseconds=1)

    added = control_plane.enqueue("mail", "send", run_at=later)

    assert record(records, added.job_id).next_attempt_at == later


@pytest.mark.parametrize("back", [timedelta(microseconds=1), timedelta(days=20_000)])
def test_a_run_at_in_the_past_becomes_now(
    control_plane: ControlPlane, records: Records, clock: Clock, back: timedelta
) -> None:
    single = control_plane.enqueue("mail", "send", run_at=clock.now - back)
    [batched] = control_plane.enqueue_many([NewJob(kind="send", run_at=clock.now - back)])

    assert record(records, single.job_id).next_attempt_at == clock.now
    assert record(records, batched.job_id).next_attempt_at == clock.now


def test_a_run_at_in_another_zone_is_the_same_instant(
    control_plane: ControlPlane, records: Records, clock: Clock
) -> None:
    """An aware time is stored exactly, whatever zone it is written in."""
    tokyo = timezone(9 * timedelta(hours=1))
    noon = datetime(clock.now.year + 1, 1, 1, 12, tzinfo=tokyo)

    single = control_plane.enqueue("mail", "send", run_at=noon)
    [batched] = control_plane.enqueue_many([NewJob(kind="send", run_at=noon)])

    for job_id in (single.job_id, batched.job_id):
        due = record(records, job_id).next_attempt_at
        assert due == datetime(clock.now.year + 1, 1, 1, 3, tzinfo=UTC)
        assert due.utcoffset() == timedelta(0)


def test_ids_grow_and_are_never_given_out_again(control_plane: ControlPlane, clock: Clock) -> None:
    """The highest id is not reused after its job has ended and moved."""
    first = control_plane.enqueue("mail", "send").job_id
    control_plane.cancel(first)

    second = control_plane.enqueue("mail", "send").job_id

    assert second > first


def test_a_batch_answers_in_its_own_order(control_plane: ControlPlane, records: Records) -> None:
    jobs = [NewJob(kind=f"kind {i}", priority=i % 10) for i in range(40)]

    added = control_plane.enqueue_many(jobs)

    assert [record(records, a.job_id).kind for a in added] == [job.kind for job in jobs]
    assert [a.job_id for a in added] == sorted({a.job_id for a in added})


def test_a_batch_may_have_ten_thousand_jobs(control_plane: ControlPlane, records: Records) -> None:
    added = control_plane.enqueue_many([NewJob(queue="bulk", kind="send")] * 10_000)

    assert len({a.job_id for a in added if a.created}) == 10_000
    [queue] = records.queues()
    assert (queue.queue, queue.queued) == ("bulk", 10_000)


def test_a_live_job_with_the_key_is_answered_instead_of_a_new_one(
    control_plane: ControlPlane, records: Records
) -> None:
    first = control_plane.enqueue("mail", "send", {"n": 1}, dedup_key="k")

    second = control_plane.enqueue("mail", "other", {"n": 2}, dedup_key="k")

    assert second == Enqueued(job_id=first.job_id, created=False)
    assert record(records, first.job_id).payload == {"n": 1}


def test_a_key_is_taken_while_its_job_waits_or_runs_and_free_from_its_end_on(
    control_plane: ControlPlane, clock: Clock
) -> None:
    """Live is queued and running, so that a job in flight never meets a second one."""

    def again() -> Enqueued:
        return control_plane.enqueue("mail", "send", dedup_key="k")

    first = again().job_id
    lease = control_plane.claim_job(first, "ada")
    assert lease is not None
    assert again() == Enqueued(job_id=first, created=False)
    control_plane.fail(first, "ada", lease.token, BROKEN)
    assert again() == Enqueued(job_id=first, created=False)
    clock.advance(MINUTE)
    lease = control_plane.claim_job(first, "ada")
    assert lease is not None
    control_plane.complete(first, "ada", lease.token)
    second = again()
    assert second.created


@pytest.mark.parametrize("end", ["complete", "fail", "cancel", "acknowledge", "sweep"])
def test_every_way_to_end_frees_the_key(
    control_plane: ControlPlane, clock: Clock, end: str
) -> None:
    scene = Scene(control_plane, clock)
    if end == "cancel":
        job_id = scene.enqueue(dedup_key="k")
        control_plane.cancel(job_id)
    else:
        lease = scene.lease(dedup_key="k", max_attempts=1)
        if end == "complete":
            scene.complete(lease)
        elif end == "fail":
            scene.fail(lease, BROKEN_FOR_GOOD)
        elif end == "acknowledge":
            scene.cancel(lease)
            scene.acknowledge(lease)
        else:
            scene.lapse()
            control_plane.sweep("broom")

    assert control_plane.enqueue(scene.queue, "work", dedup_key="k").created


def test_a_key_is_its_queue_s_own(control_plane: ControlPlane) -> None:
    one = control_plane.enqueue("mail", "send", dedup_key="k")
    other = control_plane.enqueue("print", "send", dedup_key="k")

    assert one.created
    assert other.created
    assert one.job_id != other.job_id


def test_a_job_without_a_key_is_never_a_duplicate(control_plane: ControlPlane) -> None:
    added = control_plane.enqueue_many([NewJob(kind="send"), NewJob(kind="send")])

    assert [a.created for a in added] == [True, True]


def test_the_first_of_a_key_in_a_batch_makes_the_job(
    control_plane: ControlPlane, records: Records
) -> None:
    live = control_plane.enqueue("default", "send", dedup_key="live").job_id

    added = control_plane.enqueue_many(
        [
            NewJob(kind="send", payload=0, dedup_key="new"),
            NewJob(kind="send", payload=1),
            NewJob(kind="send", payload=2, dedup_key="live"),
            NewJob(kind="send", payload=3, dedup_key="new"),
            NewJob(kind="send", payload=4, dedup_key="new", queue="other"),
        ]
    )

    assert [a.created for a in added] == [True, True, False, False, True]
    assert added[2].job_id == live
    assert added[3].job_id == added[0].job_id
    assert record(records, added[0].job_id).payload == 0
    assert len({a.job_id for a in added}) == 4


def test_a_key_over_512_bytes_is_kept_as_its_hash_and_still_a_key(
    control_plane: ControlPlane, records: Records
) -> None:
    """512 bytes, not characters."""
    short, long = "é" * 256, "é" * 256 + "x"

    kept = control_plane.enqueue("mail", "send", dedup_key=short)
    hashed = control_plane.enqueue("mail", "send", dedup_key=long)

    assert record(records, kept.job_id).dedup_key == short
    stored = record(records, hashed.job_id).dedup_key
    assert stored is not None
    assert stored.startswith("sha256:")
    assert len(stored) == len("sha256:") + 64
    assert control_plane.enqueue("mail", "send", dedup_key=long).job_id == hashed.job_id
    assert control_plane.enqueue("mail", "send", dedup_key=long + "y").created
    [batched] = control_plane.enqueue_many([NewJob(queue="mail", kind="send", dedup_key=long)])
    assert batched == Enqueued(job_id=hashed.job_id, created=False)


def test_an_enqueue_is_undone_with_the_caller_s_transaction(backend: Backend) -> None:
    """It joins the transaction and never commits it."""
    gone = []

    def undone() -> None:
        with backend.transaction() as caller:
            gone.append(caller.control_plane.enqueue("mail", "send", dedup_key="k"))
            gone.extend(caller.control_plane.enqueue_many([NewJob(kind="send")]))
            caller.write("gone")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undone()
    assert [backend.records.job(added.job_id) for added in gone] == [None, None]
    assert backend.control_plane.enqueue("mail", "send", dedup_key="k").created
    assert backend.written() == []


def test_an_enqueue_is_kept_with_the_caller_s_transaction(backend: Backend) -> None:
    with backend.transaction() as caller:
        caller.write("kept")
        kept = caller.control_plane.enqueue("mail", "send")
        assert backend.records.job(kept.job_id) is None

    assert backend.records.job(kept.job_id) is not None
    assert backend.written() == ["kept"]


def test_a_key_whose_first_job_was_rolled_back_is_free(backend: Backend) -> None:
    """In turn; two transactions side by side are arranged for each backend elsewhere."""

    def undone() -> None:
        with backend.transaction() as caller:
            assert caller.control_plane.enqueue("mail", "send", dedup_key="k").created
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undone()
    added = backend.control_plane.enqueue("mail", "send", dedup_key="k")

    assert added.created
    assert backend.records.job(added.job_id) is not None
    assert [job.job_id for job in backend.records.jobs(queue="mail")] == [added.job_id]
