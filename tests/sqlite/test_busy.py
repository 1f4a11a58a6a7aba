"""While somebody else has the file's write lock."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator

import pytest

from tenure.errors import Busy
from tenure.sqlite import SqliteControlPlane
from tenure.sqlite_records import SqliteRecords
from tenure.values import (
    Failure,
    JobLease,
    JobStatus,
    LapsedLease,
    LeaseRenewal,
    Outcome,
    Settled,
    Verb,
    Verdict,
)
from tests.sqlite.conftest import Clock

pytestmark = pytest.mark.usefixtures("hurried")

BROKEN = Failure(error_type="ValueError", message="broken")
Call = Callable[[SqliteControlPlane, int, str, int], Settled]

OWNERS_VERBS: dict[str, Call] = {
    "seal": lambda plane, *lease: plane.seal(*lease),
    "complete": lambda plane, *lease: plane.complete(*lease),
    "fail": lambda plane, *lease: plane.fail(*lease, BROKEN),
    "release": lambda plane, *lease: plane.release(*lease, started=True),
    "acknowledge_cancel": lambda plane, *lease: plane.acknowledge_cancel(*lease),
    "update_owned": lambda plane, *lease: plane.update_owned(*lease, progress=1),
}


@pytest.fixture
def lease(control_plane: SqliteControlPlane) -> JobLease:
    control_plane.enqueue("mail", "send")
    [lease] = control_plane.claim(["mail"], "ada")
    return lease


@pytest.fixture
def lock(raw: sqlite3.Connection) -> Iterator[Callable[[], object]]:
    """Takes the write lock, until the test ends."""
    yield lambda: raw.execute("begin immediate")
    if raw.in_transaction:
        raw.execute("rollback")


@pytest.mark.parametrize("verb", OWNERS_VERBS)
def test_an_owner_is_put_off_and_a_stranger_is_told_that_it_lost(
    control_plane: SqliteControlPlane,
    records: SqliteRecords,
    lease: JobLease,
    lock: Callable[[], object],
    verb: str,
) -> None:
    call = OWNERS_VERBS[verb]
    before = records.job(lease.job_id)
    lock()

    owner = call(control_plane, lease.job_id, "ada", lease.token)
    strangers = [
        call(control_plane, lease.job_id, "bob", lease.token),
        call(control_plane, lease.job_id, "ada", lease.token + 1),
        call(control_plane, lease.job_id + 1, "ada", lease.token),
    ]

    assert (owner.verdict, owner.status) == (Verdict.DEFERRED, JobStatus.RUNNING)
    assert [s.verdict for s in strangers] == [Verdict.LOST] * 3
    assert [s.status for s in strangers] == [JobStatus.RUNNING, JobStatus.RUNNING, None]
    assert records.job(lease.job_id) == before


def test_a_call_that_took_effect_before_is_known_without_the_lock(
    control_plane: SqliteControlPlane, lease: JobLease, lock: Callable[[], object]
) -> None:
    control_plane.complete(lease.job_id, "ada", lease.token)
    lock()

    again = control_plane.complete(lease.job_id, "ada", lease.token)

    assert (again.verdict, again.status) == (Verdict.ALREADY, JobStatus.COMPLETED)


def test_settle_answers_for_each_job_by_itself(
    control_plane: SqliteControlPlane, lease: JobLease, lock: Callable[[], object]
) -> None:
    lock()

    answers = control_plane.settle(
        "ada",
        [
            Outcome(job_id=lease.job_id, token=lease.token, verb=Verb.COMPLETE),
            Outcome(job_id=lease.job_id + 1, token=1, verb=Verb.COMPLETE),
        ],
    )

    assert [a.verdict for a in answers] == [Verdict.DEFERRED, Verdict.LOST]


def test_a_renewal_put_off_shows_the_present_end_and_the_cancellation(
    control_plane: SqliteControlPlane,
    lease: JobLease,
    lock: Callable[[], object],
    clock: Clock,
) -> None:
    control_plane.cancel(lease.job_id)
    lock()

    mine, not_mine = control_plane.renew(
        "ada", [(lease.job_id, lease.token), (lease.job_id, lease.token + 1)]
    )

    assert (mine.outcome, mine.cancel_requested) == (LeaseRenewal.DEFERRED, True)
    assert mine.lease_expires_at == lease.lease_expires_at
    assert (not_mine.outcome, not_mine.cancel_requested) == (LeaseRenewal.LOST, False)
    assert not_mine.lease_expires_at is None


def test_everything_else_raises_busy_and_changes_nothing(
    control_plane: SqliteControlPlane,
    records: SqliteRecords,
    lease: JobLease,
    lock: Callable[[], object],
    clock: Clock,
) -> None:
    clock.now = lease.lease_expires_at
    lapsed = LapsedLease(
        job_id=lease.job_id,
        worker_id="ada",
        token=lease.token,
        lease_expires_at=lease.lease_expires_at,
    )
    calls: list[Callable[[], object]] = [
        lambda: control_plane.enqueue("mail", "send"),
        lambda: control_plane.claim(["mail"], "bob"),
        lambda: control_plane.claim_job(lease.job_id, "bob"),
        lambda: control_plane.reclaim(lapsed, "bob"),
        lambda: control_plane.sweep("bob"),
        lambda: control_plane.cancel(lease.job_id),
        lambda: control_plane.retry(lease.job_id),
        lambda: control_plane.pause("mail"),
        lambda: control_plane.resume("mail"),
        lambda: control_plane.maintain(),
    ]
    before = records.jobs()
    lock()

    for call in calls:
        with pytest.raises(Busy, match=r"was locked by other writers for 0\.03 s"):
            call()

    assert records.jobs() == before


def test_reads_go_on_beside_a_writer(
    control_plane: SqliteControlPlane, lease: JobLease, lock: Callable[[], object], clock: Clock
) -> None:
    lock()
    clock.now = lease.lease_expires_at

    assert [held.job_id for held in control_plane.held("ada")] == [lease.job_id]
    assert [lapsed.token for lapsed in control_plane.lapsed()] == [lease.token]
    assert control_plane.next_eligible_job_id(["mail"]) is None
    assert not control_plane.cancel_requested(lease.job_id)


def test_a_write_goes_through_as_soon_as_the_file_is_free(
    control_plane: SqliteControlPlane, raw: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pause between two tries is where the other one lets go."""
    monkeypatch.undo()
    raw.execute("begin immediate")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raw.execute("commit")

    monkeypatch.setattr("tenure.sqlite_file.time.sleep", pause)

    assert control_plane.enqueue("mail", "send").created
    assert len(pauses) == 3
