"""An application's own writes, made under a lease."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from tenure.errors import CancelRequested, InvalidArgument, LeaseLost
from tenure.values import JobLease, JobStatus, LeaseRenewal, Verdict
from tests.contract.backends import Backend, Caller
from tests.contract.scenario import LEASE_FOR, MINUTE, SECOND, Scene


@pytest.fixture
def scene(backend: Backend) -> Scene:
    return Scene(backend.control_plane, backend.clock)


def write_under_guard(backend: Backend, lease: JobLease, row: str, **options: Any) -> None:
    with backend.transaction() as caller:
        caller.control_plane.guard(lease.job_id, lease.worker_id, lease.token, **options)
        caller.write(row)


def guard(caller: Caller, lease: JobLease, *, lease_for: timedelta = LEASE_FOR) -> None:
    caller.control_plane.guard(lease.job_id, lease.worker_id, lease.token, lease_for=lease_for)


def held_until(backend: Backend, lease: JobLease) -> object:
    job = backend.records.job(lease.job_id)
    assert job is not None
    return job.lease_expires_at


def test_rows_written_under_a_guard_are_committed_with_the_completion(
    backend: Backend, scene: Scene
) -> None:
    lease = scene.lease()

    with backend.transaction() as caller:
        guard(caller, lease)
        caller.write("effect")
        done = caller.control_plane.complete(lease.job_id, "ada", lease.token, {"n": 1})

    assert done.verdict is Verdict.OK
    assert backend.written() == ["effect"]
    job = backend.records.job(lease.job_id)
    assert job is not None
    assert (job.status, job.result) == (JobStatus.COMPLETED, {"n": 1})


def test_a_rollback_takes_the_rows_and_the_completion_along(backend: Backend, scene: Scene) -> None:
    lease = scene.lease()
    before = backend.records.job(lease.job_id)

    def undone() -> None:
        with backend.transaction() as caller:
            guard(caller, lease, lease_for=MINUTE)
            caller.write("effect")
            caller.control_plane.complete(lease.job_id, "ada", lease.token)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undone()
    assert backend.written() == []
    assert backend.records.job(lease.job_id) == before
    assert scene.control_plane.complete(lease.job_id, "ada", lease.token).verdict is Verdict.OK


@pytest.mark.parametrize("how", ["swept", "reclaimed", "completed", "claimed again", "unknown"])
def test_a_worker_that_comes_late_cannot_write_its_own_rows_either(
    backend: Backend, scene: Scene, how: str
) -> None:
    lease = scene.lease()
    if how == "swept":
        scene.sweep(lease, JobStatus.QUEUED)
    elif how == "reclaimed":
        scene.reclaim(lease)
    elif how == "completed":
        scene.complete(lease)
    elif how == "claimed again":
        scene.release(lease, started=True)
        scene.lease(job_id=lease.job_id)
    else:
        lease = lease._replace(job_id=lease.job_id + 1_000_000)
    before = backend.records.job(lease.job_id)

    with pytest.raises(LeaseLost, match=rf"lease {lease.token} on job {lease.job_id} "):
        write_under_guard(backend, lease, "too late")

    assert backend.written() == []
    assert backend.records.job(lease.job_id) == before


def test_the_wrong_worker_cannot_guard_with_the_right_token(backend: Backend, scene: Scene) -> None:
    lease = scene.lease()

    with pytest.raises(LeaseLost):
        write_under_guard(backend, lease._replace(worker_id="bob"), "stolen")

    assert backend.written() == []


@pytest.mark.parametrize("stale", [{"token": 99}, {"worker_id": "bob"}, {"job_id": 2**40}])
def test_a_stale_guard_is_lost_even_while_a_cancellation_stands(
    backend: Backend, scene: Scene, stale: dict[str, Any]
) -> None:
    lease = scene.lease()
    scene.cancel(lease)

    with pytest.raises(LeaseLost):
        write_under_guard(backend, lease._replace(**stale), "stale")

    assert backend.written() == []


def test_a_guard_is_refused_once_a_cancellation_stands_unless_told_otherwise(
    backend: Backend, scene: Scene
) -> None:
    lease = scene.lease()
    scene.cancel(lease)

    with pytest.raises(CancelRequested, match=f"job {lease.job_id} "):
        write_under_guard(backend, lease, "refused")
    write_under_guard(backend, lease, "cleaned up", require_cancel_not_requested=False)

    assert backend.written() == ["cleaned up"]


def test_a_guard_extends_the_lease_and_never_shortens_it(backend: Backend, scene: Scene) -> None:
    lease = scene.lease()
    backend.clock.advance(SECOND)
    with backend.transaction() as caller:
        guard(caller, lease, lease_for=SECOND)
    assert held_until(backend, lease) == lease.lease_expires_at

    with backend.transaction() as caller:
        guard(caller, lease, lease_for=MINUTE)
    assert held_until(backend, lease) == lease.lease_expires_at + MINUTE + SECOND - LEASE_FOR


def test_a_guard_never_reaches_beyond_the_timeout(backend: Backend, scene: Scene) -> None:
    lease = scene.lease(timeout=40 * SECOND)

    with backend.transaction() as caller:
        guard(caller, lease, lease_for=timedelta(hours=1))

    assert held_until(backend, lease) == lease.lease_expires_at + 10 * SECOND


def test_a_lapsed_lease_that_nobody_took_can_be_guarded(backend: Backend, scene: Scene) -> None:
    lease = scene.lease()
    backend.clock.advance(timedelta(hours=1))

    with backend.transaction() as caller:
        guard(caller, lease)
        caller.write("effect")

    assert backend.written() == ["effect"]
    assert backend.control_plane.lapsed() == []


def test_a_guard_outside_a_transaction_protects_nothing_and_is_refused(
    backend: Backend, scene: Scene
) -> None:
    lease = scene.lease()

    with pytest.raises(InvalidArgument):
        backend.another().guard(lease.job_id, "ada", lease.token)


def test_progress_and_settling_go_on_inside_the_guarded_transaction(
    backend: Backend, scene: Scene
) -> None:
    lease, other = scene.lease(), scene.lease()

    with backend.transaction() as caller:
        plane = caller.control_plane
        guard(caller, lease)
        noted = plane.update_owned(lease.job_id, "ada", lease.token, progress=1)
        settled = plane.release(other.job_id, "ada", other.token, started=True)
        added = plane.enqueue(scene.queue, "next")
        done = plane.complete(lease.job_id, "ada", lease.token)

    assert [noted.verdict, settled.verdict, done.verdict] == [Verdict.OK] * 3
    assert backend.records.job(added.job_id) is not None
    job = backend.records.job(lease.job_id)
    assert job is not None
    assert (job.status, job.progress) == (JobStatus.COMPLETED, 1)


def test_while_a_guard_is_open_the_job_s_other_calls_are_deferred(
    backend: Backend, scene: Scene
) -> None:
    """Deferred proves that the token was current: a stale one is told that it is late."""
    first = scene.lease()
    lease = scene.reclaim(first)
    before = backend.records.job(lease.job_id)
    shown = (lease.job_id, lease.worker_id, lease.token)
    one, two, three = (backend.another() for _ in range(3))

    with backend.transaction() as caller, ThreadPoolExecutor() as pool:
        guard(caller, lease)
        caller.write("effect")
        renewing = pool.submit(one.renew, "bob", [(lease.job_id, lease.token)])
        completing = pool.submit(two.complete, *shown)
        late = pool.submit(three.complete, first.job_id, "ada", first.token)
        [renewal], completion = renewing.result(), completing.result()
        assert late.result().verdict is Verdict.LOST
        assert backend.records.job(lease.job_id) == before

    assert (renewal.outcome, renewal.lease_expires_at, renewal.cancel_requested) == (
        LeaseRenewal.DEFERRED,
        lease.lease_expires_at,
        False,
    )
    assert (completion.verdict, completion.status) == (Verdict.DEFERRED, JobStatus.RUNNING)
    assert scene.control_plane.complete(*shown).verdict is Verdict.OK
    assert backend.written() == ["effect"]


@pytest.mark.needs("row locks")
def test_while_a_guard_is_open_other_jobs_go_on(backend: Backend, scene: Scene) -> None:
    guarded, other, ending = scene.lease(), scene.lease(), scene.lease()
    waiting = scene.enqueue()

    with backend.transaction() as caller:
        guard(caller, guarded)
        answers = scene.control_plane.renew(
            "ada", [(lease.job_id, lease.token) for lease in (guarded, other)]
        )
        done = scene.control_plane.complete(ending.job_id, "ada", ending.token)
        [claimed] = scene.control_plane.claim([scene.queue], "bob")

    assert {answer.job_id: answer.outcome for answer in answers} == {
        guarded.job_id: LeaseRenewal.DEFERRED,
        other.job_id: LeaseRenewal.RENEWED,
    }
    assert done.verdict is Verdict.OK
    assert claimed.job_id == waiting


@pytest.mark.needs("row locks")
def test_while_a_guard_is_open_no_sweep_and_no_reclaim_takes_its_job(
    backend: Backend, scene: Scene
) -> None:
    lease = scene.lease()
    other = scene.lease()
    with backend.transaction() as caller:
        guard(caller, lease)
        backend.clock.advance(timedelta(hours=1))
        pinned = scene.control_plane.lapsed()

        reclaims = [
            scene.control_plane.reclaim(one, "bob") for one in pinned if one.job_id == lease.job_id
        ]
        swept = scene.control_plane.sweep("broom")

    assert reclaims == [None]
    assert [s.job_id for s in swept] == [other.job_id]
    assert scene.control_plane.complete(lease.job_id, "ada", lease.token).verdict is Verdict.OK
