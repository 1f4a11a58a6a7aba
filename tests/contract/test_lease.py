"""Keeping a lease, and losing it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tenure.control_plane import ControlPlane
from tenure.records import Records
from tenure.values import (
    HeldLease,
    JobLease,
    JobStatus,
    LapsedLease,
    LeaseRenewal,
    NewJob,
    Renewal,
    Verdict,
)
from tests.contract.backends import Backend, Clock
from tests.contract.scenario import LEASE_FOR, MILLISECOND, MINUTE, SECOND, Scene

MICROSECOND = timedelta(microseconds=1)


@pytest.fixture
def scene(control_plane: ControlPlane, clock: Clock) -> Scene:
    return Scene(control_plane, clock)


def whole(moment: datetime) -> datetime:
    """The moment, cut to milliseconds."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def renewed(control_plane: ControlPlane, lease: JobLease, lease_for: timedelta) -> Renewal:
    [renewal] = control_plane.renew(
        lease.worker_id, [(lease.job_id, lease.token)], lease_for=lease_for
    )
    return renewal


def pinned(lease: JobLease) -> LapsedLease:
    return LapsedLease(
        job_id=lease.job_id,
        worker_id=lease.worker_id,
        token=lease.token,
        lease_expires_at=lease.lease_expires_at,
    )


def test_every_lease_ends_on_a_whole_millisecond(scene: Scene, clock: Clock) -> None:
    """So that any language can hand the instant back; cut, never rounded up."""
    clock.set(clock.now.replace(microsecond=123_999))
    plane = scene.control_plane

    lease = scene.lease()
    assert lease.lease_expires_at == whole(clock.now + LEASE_FOR)
    assert lease.lease_expires_at.microsecond == 123_000
    assert renewed(plane, lease, MINUTE).lease_expires_at == whole(clock.now + MINUTE)
    plane.update_owned(lease.job_id, "ada", lease.token, lease_for=2 * MINUTE)
    [held] = plane.held("ada")
    assert held.lease_expires_at == whole(clock.now + 2 * MINUTE)
    clock.advance(2 * MINUTE)
    [lapsed] = plane.lapsed()
    reclaimed = plane.reclaim(lapsed, "bob", lease_for=MINUTE)
    assert reclaimed is not None
    assert reclaimed.lease_expires_at == whole(clock.now + MINUTE)


def test_a_lease_may_be_as_short_as_100_ms_and_as_long_as_a_day(scene: Scene, clock: Clock) -> None:
    for lease_for in (100 * MILLISECOND, timedelta(hours=24)):
        lease = scene.control_plane.claim_job(scene.enqueue(), "ada", lease_for=lease_for)
        assert lease is not None
        assert lease.lease_expires_at == whole(clock.now + lease_for)


def test_a_renewal_moves_the_end_and_nothing_else(
    scene: Scene, records: Records, clock: Clock
) -> None:
    lease = scene.lease()
    before = records.job(lease.job_id)
    assert before is not None
    clock.advance(10 * SECOND)

    renewal = renewed(scene.control_plane, lease, LEASE_FOR)

    end = whole(clock.now + LEASE_FOR)
    assert renewal == Renewal(
        job_id=lease.job_id,
        token=lease.token,
        outcome=LeaseRenewal.RENEWED,
        lease_expires_at=end,
        cancel_requested=False,
    )
    assert records.job(lease.job_id) == replace(before, lease_expires_at=end)


def test_a_renewal_may_shorten_the_lease(scene: Scene, clock: Clock) -> None:
    lease = scene.lease()

    renewal = renewed(scene.control_plane, lease, 10 * SECOND)

    assert renewal.lease_expires_at == whole(clock.now + 10 * SECOND)


@pytest.mark.parametrize(("worker_id", "token_off"), [("bob", 0), ("ada", -1), ("ada", 1)], ids=str)
def test_only_the_owner_renews_and_a_refusal_changes_nothing(
    scene: Scene, records: Records, clock: Clock, worker_id: str, token_off: int
) -> None:
    lease = scene.lease()
    before = records.job(lease.job_id)
    clock.advance(SECOND)

    [renewal] = scene.control_plane.renew(worker_id, [(lease.job_id, lease.token + token_off)])

    assert (renewal.outcome, renewal.lease_expires_at) == (LeaseRenewal.LOST, None)
    assert not renewal.cancel_requested
    assert records.job(lease.job_id) == before


def test_a_lapsed_lease_that_nobody_took_is_still_its_owner_s(
    scene: Scene, records: Records, clock: Clock
) -> None:
    """The token decides, not the clock."""
    renewing, completing = scene.lease(), scene.lease()
    clock.advance(timedelta(days=3))

    renewal = renewed(scene.control_plane, renewing, LEASE_FOR)
    completion = scene.control_plane.complete(completing.job_id, "ada", completing.token, 1)

    assert renewal.outcome is LeaseRenewal.RENEWED
    assert renewal.lease_expires_at == whole(clock.now + LEASE_FOR)
    assert completion.verdict is Verdict.OK
    assert scene.control_plane.lapsed() == []


def test_a_renewed_lease_is_nobody_else_s_however_long_its_job_has_run(
    scene: Scene, records: Records, clock: Clock
) -> None:
    """Time since the start proves nothing, only the lease does."""
    lease = scene.lease()

    for _ in range(100):
        clock.advance(20 * SECOND)
        assert renewed(scene.control_plane, lease, LEASE_FOR).outcome is LeaseRenewal.RENEWED
        assert scene.control_plane.lapsed() == []
        assert scene.control_plane.sweep("broom") == []
        assert scene.control_plane.claim([scene.queue], "bob") == []
    assert scene.control_plane.complete(lease.job_id, "ada", lease.token).verdict is Verdict.OK
    job = records.job(lease.job_id)
    assert job is not None
    assert (job.attempt, job.token) == (1, 1)


def test_no_lease_reaches_beyond_the_timeout(scene: Scene, clock: Clock) -> None:
    start = clock.now
    lease = scene.lease(timeout=40 * SECOND)
    plane, end = scene.control_plane, whole(start + 40 * SECOND)
    assert lease.lease_expires_at == whole(start + LEASE_FOR)

    clock.advance(20 * SECOND)
    assert renewed(plane, lease, LEASE_FOR).lease_expires_at == end
    assert renewed(plane, lease, timedelta(hours=24)).lease_expires_at == end
    plane.update_owned(lease.job_id, "ada", lease.token, lease_for=MINUTE)
    [held] = plane.held("ada")
    assert held.lease_expires_at == end
    clock.advance(MINUTE)
    late = renewed(plane, lease, LEASE_FOR)
    assert (late.outcome, late.lease_expires_at) == (LeaseRenewal.RENEWED, end)
    assert [lapsed.job_id for lapsed in plane.lapsed()] == [lease.job_id]


def test_the_timeout_starts_anew_with_a_reclaim_and_with_a_claim(
    scene: Scene, clock: Clock
) -> None:
    first = scene.lease(timeout=40 * SECOND)
    reclaimed = scene.reclaim(first)
    start = clock.now
    clock.advance(20 * SECOND)
    assert renewed(scene.control_plane, reclaimed, LEASE_FOR).lease_expires_at == whole(
        start + 40 * SECOND
    )
    scene.release(reclaimed, started=True)
    clock.advance(MINUTE)
    again = scene.lease(job_id=first.job_id)
    start = clock.now
    clock.advance(20 * SECOND)
    assert renewed(scene.control_plane, again, LEASE_FOR).lease_expires_at == whole(
        start + 40 * SECOND
    )


def test_one_renewal_call_answers_for_each_lease_on_its_own(
    scene: Scene, records: Records, clock: Clock
) -> None:
    kept, cancelled, lost, ended = (scene.lease() for _ in range(4))
    scene.cancel(cancelled)
    scene.complete(ended)
    clock.advance(SECOND)

    answers = scene.control_plane.renew(
        "ada",
        [
            (ended.job_id, ended.token),
            (lost.job_id, lost.token + 1),
            (kept.job_id, kept.token),
            (cancelled.job_id, cancelled.token),
            (ended.job_id + 1_000_000, 1),
        ],
    )

    end = whole(clock.now + LEASE_FOR)
    assert {(a.job_id, a.token, a.outcome, a.lease_expires_at) for a in answers} == {
        (kept.job_id, 1, LeaseRenewal.RENEWED, end),
        (cancelled.job_id, 1, LeaseRenewal.RENEWED, end),
        (lost.job_id, 2, LeaseRenewal.LOST, None),
        (ended.job_id, 1, LeaseRenewal.LOST, None),
        (ended.job_id + 1_000_000, 1, LeaseRenewal.LOST, None),
    }
    assert len(answers) == 5
    assert [a.job_id for a in answers if a.cancel_requested] == [cancelled.job_id]


def test_a_lost_lease_and_its_successor_may_be_renewed_in_one_call(
    scene: Scene, clock: Clock
) -> None:
    first = scene.lease()
    second = scene.reclaim(first, "ada")
    clock.advance(SECOND)

    answers = scene.control_plane.renew("ada", [(first.job_id, token) for token in (1, 2)])

    assert {answer.token: answer.outcome for answer in answers} == {
        first.token: LeaseRenewal.LOST,
        second.token: LeaseRenewal.RENEWED,
    }


def test_a_thousand_leases_are_renewed_in_one_call(scene: Scene) -> None:
    scene.control_plane.enqueue_many([NewJob(queue=scene.queue, kind="work")] * 1000)
    leases = scene.control_plane.claim([scene.queue], "ada", max_jobs=1000)

    answers = scene.control_plane.renew("ada", [(x.job_id, x.token) for x in leases])

    assert len(leases) == len(answers) == 1000
    assert {answer.outcome for answer in answers} == {LeaseRenewal.RENEWED}


def test_the_end_of_a_lease_itself_is_lapsed_and_the_moment_before_is_not(
    scene: Scene, clock: Clock
) -> None:
    lease = scene.lease()

    clock.set(lease.lease_expires_at - MICROSECOND)
    assert scene.control_plane.lapsed() == []
    clock.set(lease.lease_expires_at)
    assert scene.control_plane.lapsed() == [pinned(lease)]


def test_lapsed_is_a_read_in_claim_order(scene: Scene, records: Records, clock: Clock) -> None:
    leases = []
    for worker_id in ("ada", "bob", "ada"):
        leases.append(scene.lease(worker_id))
        clock.advance(SECOND)
    fresh = scene.lease()
    renewed(scene.control_plane, fresh, 5 * MINUTE)
    clock.advance(MINUTE)
    before = [records.job(lease.job_id) for lease in leases]

    assert scene.control_plane.lapsed() == [pinned(lease) for lease in leases]
    assert scene.control_plane.lapsed(limit=2) == [pinned(lease) for lease in leases[:2]]
    assert scene.control_plane.lapsed() == [pinned(lease) for lease in leases]
    assert [records.job(lease.job_id) for lease in leases] == before


def test_a_reclaim_mints_a_token_and_spends_no_attempt(
    scene: Scene, records: Records, clock: Clock
) -> None:
    lease = scene.lease(meta={"trace": 1}, payload=[1])
    scene.control_plane.update_owned(lease.job_id, "ada", lease.token, progress=7)
    scene.lapse()

    reclaimed = scene.control_plane.reclaim(pinned(lease), "bob", lease_for=MINUTE)

    assert reclaimed == lease._replace(
        token=2,
        worker_id="bob",
        lease_expires_at=whole(clock.now + MINUTE),
        progress=7,
    )
    job = records.job(lease.job_id)
    assert job is not None
    assert (job.status, job.worker_id, job.claimed_at) == (JobStatus.RUNNING, "bob", clock.now)
    [row] = records.attempts(lease.job_id)
    assert (row.token, row.worker_id, row.verb, row.outcome) == (1, "ada", "reclaim", "lost")


def test_an_active_lease_is_never_reclaimed(scene: Scene, records: Records, clock: Clock) -> None:
    lease = scene.lease()
    clock.set(lease.lease_expires_at - MICROSECOND)

    assert scene.control_plane.reclaim(pinned(lease), "bob") is None
    assert scene.control_plane.sweep("broom") == []
    job = records.job(lease.job_id)
    assert job is not None
    assert (job.worker_id, job.token) == ("ada", 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"worker_id": "eve"},
        {"token": 0},
        {"token": 2},
        {"lease_expires_at": MILLISECOND},
        {"lease_expires_at": -MILLISECOND},
        {"lease_expires_at": MICROSECOND},
        {"job_id": 1_000_000},
    ],
    ids=str,
)
def test_a_reclaim_pins_the_prior_owner_token_and_instant_exactly(
    scene: Scene, records: Records, wrong: dict[str, object]
) -> None:
    lease = scene.lease()
    scene.lapse()
    scene.lapse()
    before = records.job(lease.job_id)
    pin = pinned(lease)
    for name, value in wrong.items():
        shifted = getattr(pin, name) + value if isinstance(value, timedelta) else value
        pin = replace(pin, **{name: shifted})  # type: ignore[arg-type]

    assert scene.control_plane.reclaim(pin, "bob") is None
    assert records.job(lease.job_id) == before
    assert scene.control_plane.reclaim(pinned(lease), "bob") is not None


def test_a_renewal_between_the_scan_and_the_reclaim_wins(
    scene: Scene, records: Records, clock: Clock
) -> None:
    lease = scene.lease()
    scene.lapse()
    [seen] = scene.control_plane.lapsed()

    renewed(scene.control_plane, lease, LEASE_FOR)
    assert scene.control_plane.reclaim(seen, "bob") is None
    scene.lapse()
    assert scene.control_plane.reclaim(seen, "bob") is None
    [seen_again] = scene.control_plane.lapsed()
    reclaimed = scene.control_plane.reclaim(seen_again, "bob")
    assert reclaimed is not None
    assert (reclaimed.token, reclaimed.attempt) == (2, 1)


def test_a_lease_pinned_twice_is_reclaimed_once(backend: Backend) -> None:
    scene = Scene(backend.control_plane, backend.clock)
    lease = scene.lease()
    scene.lapse()
    bob, cleo = backend.another(), backend.another()
    assert bob.lapsed() == cleo.lapsed() == [pinned(lease)]

    assert bob.reclaim(pinned(lease), "bob") is not None
    assert cleo.reclaim(pinned(lease), "cleo") is None


def test_the_lease_before_a_reclaim_writes_nothing_any_more(scene: Scene, records: Records) -> None:
    lease = scene.lease()
    scene.reclaim(lease)
    before = records.job(lease.job_id)
    plane, shown = scene.control_plane, (lease.job_id, "ada", lease.token)

    assert renewed(plane, lease, MINUTE).outcome is LeaseRenewal.LOST
    assert plane.complete(*shown, {"late": True}).verdict is Verdict.LOST
    assert plane.update_owned(*shown, progress="late").verdict is Verdict.LOST
    assert plane.seal(*shown, {"late": True}).verdict is Verdict.LOST
    assert records.job(lease.job_id) == before


def test_a_worker_that_has_its_job_again_is_not_its_own_former_self(
    scene: Scene, records: Records, clock: Clock
) -> None:
    """Names repeat, tokens do not."""
    first = scene.lease()
    scene.sweep(first, JobStatus.QUEUED)
    clock.advance(MINUTE)
    second = scene.lease(job_id=first.job_id)
    before = records.job(first.job_id)
    plane, shown = scene.control_plane, (first.job_id, "ada", first.token)
    assert second.worker_id == first.worker_id

    assert renewed(plane, first, MINUTE).outcome is LeaseRenewal.LOST
    assert plane.complete(*shown).verdict is Verdict.LOST
    assert plane.release(*shown, started=False).verdict is Verdict.LOST
    assert records.job(first.job_id) == before
    assert plane.complete(second.job_id, "ada", second.token).verdict is Verdict.OK


def test_tokens_only_grow_through_the_whole_life_of_a_job(scene: Scene, clock: Clock) -> None:
    tokens = []
    lease = scene.lease()
    job_id = lease.job_id
    tokens.append(lease.token)
    scene.release(lease, started=False)
    lease = scene.lease(job_id=job_id)
    tokens.append(lease.token)
    lease = scene.reclaim(lease)
    tokens.append(lease.token)
    scene.sweep(lease, JobStatus.QUEUED)
    clock.advance(MINUTE)
    lease = scene.lease(job_id=job_id)
    tokens.append(lease.token)
    scene.cancel(lease)
    scene.acknowledge(lease)
    scene.control_plane.retry(job_id)
    lease = scene.lease(job_id=job_id)
    tokens.append(lease.token)

    assert tokens == sorted(set(tokens))


def test_held_lists_the_leases_of_one_worker(scene: Scene) -> None:
    """So that a client whose claim was answered into a broken connection can give them back."""
    first, lapsed, other = scene.lease(), scene.lease(), scene.lease("bob")
    ended = scene.lease()
    scene.complete(ended)
    scene.lapse()

    held = scene.control_plane.held("ada")

    assert sorted(held, key=lambda h: h.job_id) == [
        HeldLease(job_id=x.job_id, token=x.token, lease_expires_at=x.lease_expires_at)
        for x in (first, lapsed)
    ]
    assert [h.job_id for h in scene.control_plane.held("bob")] == [other.job_id]
    assert scene.control_plane.held("nobody") == []


def test_progress_is_noted_replaced_and_kept(scene: Scene, records: Records) -> None:
    lease = scene.lease()
    plane, shown = scene.control_plane, (lease.job_id, "ada", lease.token)

    def progress() -> object:
        job = records.job(lease.job_id)
        assert job is not None
        return job.progress

    assert plane.update_owned(*shown, progress={"page": 1}).verdict is Verdict.OK
    assert progress() == {"page": 1}
    plane.update_owned(*shown, progress=[2])
    assert progress() == [2]
    plane.update_owned(*shown, lease_for=MINUTE)
    assert progress() == [2]
    plane.update_owned(*shown, progress=0)
    assert progress() == 0


def test_progress_moves_the_lease_only_when_told_how_far(scene: Scene, clock: Clock) -> None:
    lease = scene.lease()
    plane, shown = scene.control_plane, (lease.job_id, "ada", lease.token)
    clock.advance(SECOND)

    plane.update_owned(*shown, progress=1)
    [held] = plane.held("ada")
    assert held.lease_expires_at == lease.lease_expires_at
    plane.update_owned(*shown, lease_for=5 * SECOND)
    [held] = plane.held("ada")
    assert held.lease_expires_at == whole(clock.now + 5 * SECOND)


def test_progress_is_refused_once_a_cancellation_stands(scene: Scene, records: Records) -> None:
    lease = scene.lease()
    scene.cancel(lease)
    plane, shown = scene.control_plane, (lease.job_id, "ada", lease.token)

    refused = plane.update_owned(*shown, progress=1, lease_for=MINUTE)
    [held] = plane.held("ada")
    assert refused.verdict is Verdict.CANCEL_REQUESTED
    assert held.lease_expires_at == lease.lease_expires_at
    accepted = plane.update_owned(*shown, progress=2, require_cancel_not_requested=False)
    assert accepted.verdict is Verdict.OK
    job = records.job(lease.job_id)
    assert job is not None
    assert job.progress == 2
