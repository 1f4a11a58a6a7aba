"""Several workers at once, each on its own connection, let go together by a barrier.

Whoever wins, the outcome must be one that some order of the calls explains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import pytest

from tenure.control_plane import ControlPlane
from tenure.values import JobStatus, NewJob, Settled, Verdict
from tests.contract.backends import Backend
from tests.contract.scenario import Scene

T = TypeVar("T")


@pytest.fixture
def scene(backend: Backend) -> Scene:
    return Scene(backend.control_plane, backend.clock)


class Racers:
    """Threads with a control plane each, which start every race at the same moment."""

    def __init__(self, backend: Backend, count: int) -> None:
        self.planes = [backend.another() for _ in range(count)]
        self.barrier = Barrier(count, timeout=30)
        self.pool = ThreadPoolExecutor(count)

    def race(self, *calls: Callable[[ControlPlane], T]) -> list[T]:
        def run(plane: ControlPlane, call: Callable[[ControlPlane], T]) -> T:
            self.barrier.wait()
            return call(plane)

        started = [
            self.pool.submit(run, plane, call)
            for plane, call in zip(self.planes, calls, strict=True)
        ]
        return [future.result(timeout=30) for future in started]


def repeat(race: Callable[[], None], *, times: int = 20) -> None:
    for _ in range(times):
        race()


def test_two_workers_at_the_same_candidate_make_one_owner(backend: Backend, scene: Scene) -> None:
    racers = Racers(backend, 2)

    def race() -> None:
        scene.enqueue()
        [candidate, same] = racers.race(
            *(lambda plane: plane.next_eligible_job_id([scene.queue]),) * 2
        )
        assert candidate is not None
        assert candidate == same

        leases = racers.race(
            lambda plane: plane.claim_job(candidate, "ada"),
            lambda plane: plane.claim_job(candidate, "bob"),
        )

        [won] = [lease for lease in leases if lease is not None]
        job = backend.records.job(candidate)
        assert job is not None
        assert (job.worker_id, job.attempt, job.token) == (won.worker_id, 1, 1)
        scene.complete(won)

    repeat(race)


def test_claims_of_many_workers_at_once_share_out_every_job_once(
    backend: Backend, scene: Scene
) -> None:
    count = 150
    backend.control_plane.enqueue_many([NewJob(queue=scene.queue, kind="work")] * count)

    def work(name: str, max_jobs: int) -> Callable[[ControlPlane], list[tuple[int, int]]]:
        def until_empty(plane: ControlPlane) -> list[tuple[int, int]]:
            got = []
            while leases := plane.claim([scene.queue], name, max_jobs=max_jobs):
                got += [(lease.job_id, lease.token) for lease in leases]
            return got

        return until_empty

    shares = Racers(backend, 4).race(work("a", 1), work("b", 1), work("c", 3), work("d", 7))

    taken = [lease for share in shares for lease in share]
    # An empty claim is no proof that nothing is left; the rest must still be there.
    rest = backend.control_plane.claim([scene.queue], "rest", max_jobs=1000)
    taken += [(lease.job_id, lease.token) for lease in rest]
    assert max(Counter(taken).values()) == 1
    assert len(taken) == count
    assert {token for _, token in taken} == {1}


def test_one_of_many_enqueues_with_a_key_makes_the_job(backend: Backend, scene: Scene) -> None:
    racers = Racers(backend, 4)

    def race() -> None:
        added = racers.race(*(lambda plane: plane.enqueue(scene.queue, "work", dedup_key="k"),) * 4)

        assert sorted(a.created for a in added) == [False, False, False, True]
        assert len({a.job_id for a in added}) == 1
        backend.control_plane.cancel(added[0].job_id)

    repeat(race)


def insistently(call: Callable[[], Settled]) -> Verdict:
    """Ask until the answer is not `deferred`, which is what it says to do."""
    while (settled := call()).verdict is Verdict.DEFERRED:
        pass
    return settled.verdict


def test_of_a_completion_and_a_cancellation_exactly_one_is_accepted(
    backend: Backend, scene: Scene
) -> None:
    racers = Racers(backend, 2)

    def race() -> None:
        lease = scene.lease()

        completion, cancellation = racers.race(
            lambda plane: insistently(lambda: plane.complete(lease.job_id, "ada", lease.token)),
            lambda plane: plane.cancel(lease.job_id).verdict,
        )

        job = backend.records.job(lease.job_id)
        assert job is not None
        if completion is Verdict.OK:
            assert cancellation is Verdict.REFUSED
            assert job.status is JobStatus.COMPLETED
        else:
            assert (completion, cancellation) == (Verdict.CANCEL_REQUESTED, Verdict.OK)
            assert (job.status, job.cancel_requested) == (JobStatus.RUNNING, True)

    repeat(race)


def test_of_a_late_renewal_and_a_sweep_only_one_has_the_job(backend: Backend, scene: Scene) -> None:
    racers = Racers(backend, 2)

    def race() -> None:
        lease = scene.lease(max_attempts=1)
        scene.lapse()

        [renewed, swept] = racers.race(
            lambda plane: str(plane.renew("ada", [(lease.job_id, 1)])[0].outcome),
            lambda plane: "".join(s.outcome for s in plane.sweep("broom")),
        )

        job = backend.records.job(lease.job_id)
        assert job is not None
        if swept:
            assert renewed != "renewed"
            assert (job.token, job.status) == (2, JobStatus.FAILED)
        else:
            assert renewed == "renewed"
            assert (job.token, job.status) == (1, JobStatus.RUNNING)
        scene.complete(lease)

    repeat(race)


def test_sweeps_at_once_decide_about_each_lease_once(backend: Backend, scene: Scene) -> None:
    racers = Racers(backend, 3)

    def race() -> None:
        leases = [scene.lease(max_attempts=1) for _ in range(8)]
        scene.lapse()

        shares = racers.race(
            *(lambda plane: [s.job_id for s in plane.sweep("broom", limit=4)],) * 3
        )

        swept = [job_id for share in shares for job_id in share]
        rest = [s.job_id for s in backend.control_plane.sweep("broom")]
        assert sorted(swept + rest) == sorted(lease.job_id for lease in leases)

    repeat(race, times=5)


def test_a_lease_that_many_pinned_is_reclaimed_by_one(backend: Backend, scene: Scene) -> None:
    racers = Racers(backend, 3)

    def race() -> None:
        lease = scene.lease()
        scene.lapse()
        [pinned] = backend.control_plane.lapsed()

        takers = racers.race(*(lambda plane: plane.reclaim(pinned, "taker"),) * 3)

        [reclaimed] = [taker for taker in takers if taker is not None]
        assert (reclaimed.token, reclaimed.attempt) == (lease.token + 1, 1)
        scene.complete(reclaimed)

    repeat(race)
