"""Renewal: what is lost, what is only late, what is learned along the way."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from tenure import InvalidArgument, LeaseRenewal, Renewal, ServerUnavailable, Tenure
from tenure.heartbeat import Heartbeat, answer_within
from tenure.ledger import Ledger
from tenure.standing import Standing
from tests.runner.fakes import Clock, lease
from tests.runner.waiting import eventually

HALF_A_MINUTE = timedelta(seconds=30)
Calls = list[tuple[str, list[tuple[int, int]]]]


def renewal(
    job_id: int, token: int, outcome: LeaseRenewal, *, cancel_requested: bool = False
) -> Renewal:
    return Renewal(
        job_id=job_id,
        token=token,
        outcome=outcome,
        lease_expires_at=None if outcome is LeaseRenewal.LOST else datetime.now(UTC),
        cancel_requested=cancel_requested,
    )


class Answers:
    """Renews with one outcome, or raises; keeps what it was asked."""

    def __init__(self, outcome: LeaseRenewal | Exception, *, cancel_requested: bool = False):
        self.outcome = outcome
        self.cancel_requested = cancel_requested
        self.calls: Calls = []

    def __call__(
        self, worker_id: str, leases: Sequence[tuple[int, int]], lease_for: timedelta
    ) -> list[Renewal]:
        self.calls.append((worker_id, list(leases)))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return [
            renewal(*key, self.outcome, cancel_requested=self.cancel_requested) for key in leases
        ]


def standing_in(ledger: Ledger, clock: Clock | None = None, **changes: object) -> Standing:
    read = clock or time.monotonic
    standing = Standing(lease(**changes), sent=read(), lease_for=HALF_A_MINUTE, monotonic=read)
    ledger.add(standing)
    return standing


def test_all_leases_are_renewed_in_one_call_for_each_name_they_were_granted_to() -> None:
    ledger = Ledger()
    for job_id, worker_id in [(1, "before"), (2, "after"), (3, "after")]:
        standing_in(ledger, job_id=job_id, worker_id=worker_id)
    answers = Answers(LeaseRenewal.RENEWED)

    Heartbeat(ledger, answers, period=HALF_A_MINUTE).beat()

    assert answers.calls == [("before", [(1, 1)]), ("after", [(2, 1), (3, 1)])]


def test_a_lease_lost_to_its_successor_in_the_same_process_does_not_take_that_along() -> None:
    ledger = Ledger()
    old, new = standing_in(ledger, token=1), standing_in(ledger, token=2)

    def renew(
        worker_id: str, leases: Sequence[tuple[int, int]], lease_for: timedelta
    ) -> list[Renewal]:
        return [
            renewal(job_id, token, LeaseRenewal.LOST if token == 1 else LeaseRenewal.RENEWED)
            for job_id, token in leases
        ]

    Heartbeat(ledger, renew, period=HALF_A_MINUTE).beat()

    assert old.lost
    assert not new.lost


def test_a_lease_is_lost_when_it_was_not_renewed_in_time_by_the_monotonic_clock() -> None:
    clock = Clock()
    standing = standing_in(Ledger(), clock)

    clock.now += 29.99
    assert not standing.lost
    clock.now += 0.01

    assert standing.lost


def test_the_time_of_a_lease_counts_from_when_its_renewal_was_sent() -> None:
    clock = Clock()
    standing = standing_in(Ledger(), clock)
    sent = clock.now + 10
    clock.now += 25

    standing.proved(sent)

    clock.now = sent + 29.99
    assert not standing.lost
    clock.now = sent + 30
    assert standing.lost


def test_a_deferred_renewal_is_no_loss() -> None:
    ledger = Ledger()
    standing = standing_in(ledger)
    before = standing.good_until

    Heartbeat(ledger, Answers(LeaseRenewal.DEFERRED), period=HALF_A_MINUTE).beat()

    assert not standing.lost
    assert standing.good_until > before


def test_a_lease_is_never_believed_in_beyond_its_timeout() -> None:
    clock = Clock()
    standing = standing_in(Ledger(), clock, timeout=timedelta(seconds=40))
    clock.now += 20
    standing.proved(clock.now)

    clock.now += 20

    assert standing.lost == "the job's timeout is over"


def test_a_lost_lease_stays_lost_and_is_not_renewed() -> None:
    ledger = Ledger()
    standing = standing_in(ledger)
    standing.lose("for a test")
    answers = Answers(LeaseRenewal.RENEWED)

    Heartbeat(ledger, answers, period=HALF_A_MINUTE).beat()

    assert answers.calls == []
    assert standing.lost == "for a test"


def test_a_renewal_tells_of_an_accepted_cancellation() -> None:
    ledger = Ledger()
    standing = standing_in(ledger)

    Heartbeat(
        ledger, Answers(LeaseRenewal.RENEWED, cancel_requested=True), period=HALF_A_MINUTE
    ).beat()

    assert standing.cancel_requested


def test_a_beat_that_cannot_be_written_is_tried_again_and_is_no_loss() -> None:
    ledger = Ledger()
    standing = standing_in(ledger)
    answers = Answers(ServerUnavailable("down"))
    heartbeat = Heartbeat(ledger, answers, period=timedelta(milliseconds=20))
    heartbeat.start()

    eventually(lambda: len(answers.calls) >= 3, "the beat was tried again")
    answers.outcome = LeaseRenewal.RENEWED
    before = standing.proved_at
    eventually(lambda: standing.proved_at > before, "the lease was renewed")
    heartbeat.stop()

    assert not standing.lost


@pytest.mark.parametrize("heartbeat", [3.5, 6, 7])
def test_a_heartbeat_that_cannot_keep_the_lease_is_refused_with_both_numbers(
    sqlite_app: Tenure, heartbeat: float
) -> None:
    """O05."""
    with pytest.raises(InvalidArgument, match=rf"every {heartbeat:g} s cannot keep .* 6 s"):
        sqlite_app.worker(lease_for=timedelta(seconds=6), heartbeat=timedelta(seconds=heartbeat))


def test_a_lease_is_renewed_at_least_twice_while_it_lasts(sqlite_app: Tenure) -> None:
    ledger = Ledger()
    answers = Answers(LeaseRenewal.RENEWED)
    standing = Standing(lease(), sent=time.monotonic(), lease_for=timedelta(seconds=0.6))
    ledger.add(standing)
    heartbeat = Heartbeat(ledger, answers, period=timedelta(seconds=0.2))
    begun = time.monotonic()

    heartbeat.start()
    eventually(lambda: len(answers.calls) >= 4, "four beats were sent")
    heartbeat.stop()

    # Four beats need three periods at least; that they came within two leases is the promise.
    assert time.monotonic() - begun >= 0.6


def test_the_shortest_lease_rules_the_period_also_when_it_comes_in_between() -> None:
    """O05."""
    ledger = Ledger()
    answers = Answers(LeaseRenewal.RENEWED)
    heartbeat = Heartbeat(ledger, answers, period=timedelta(hours=1))
    heartbeat.start()
    try:
        short = Standing(lease(), sent=time.monotonic(), lease_for=timedelta(seconds=0.3))
        ledger.add(short)

        eventually(lambda: len(answers.calls) >= 3, "it was renewed again and again")

        assert not short.lost
    finally:
        heartbeat.stop()


@pytest.mark.parametrize(("period", "wait"), [(10, 10), (12, 9), (15, 7.5), (1, 1)])
def test_an_unanswered_beat_leaves_time_for_another(period: float, wait: float) -> None:
    given = answer_within(timedelta(seconds=period), HALF_A_MINUTE)

    assert given.total_seconds() == wait
    # Proved a period before it was sent; given up; sent again; answered as late as that.
    assert period + wait < 30
