"""The soak's checker finds each way in which a promise can be broken, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.checker import check
from tests.chaos.forged import SECOND, Life, history
from tests.chaos.history import Act, Batch, Effect, History, Lapse, Start


def rules_broken(found: History) -> set[str]:
    return {violation.rule for violation in check(found)[1]}


def done() -> Life:
    return Life().claimed().ended()


GOOD: dict[str, History] = {
    "completed": done().history(),
    "failed, then completed": Life().claimed().requeued().claimed("b").ended().history(),
    "renewed": Life().claimed().changed(lease_expires_at=9 * SECOND).ended().history(),
    "progress": Life().claimed().changed(progress=1).ended().history(),
    "cancelled while queued": Life().ended("cancelled").history(),
    "cancelled while running": (
        Life().claimed().changed(cancel_requested=True).ended("cancelled").history()
    ),
    "lapsed, then completed": Life().claimed().lapsed().claimed("b").ended().history(),
    "lapsed out of a batch": (
        Life().claimed(buffered=True).lapsed(attempt=0, solo=True).claimed("b").ended().history()
    ),
    "retried": Life().ended("cancelled").retried().claimed().ended().history(),
    "given back unstarted": (
        Life().claimed(started=False).requeued(attempt=0).claimed("b").ended().history()
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_nothing_is_wrong_with_a_good_life(name: str) -> None:
    assert check(GOOD[name])[1] == []


def healed(**result: Any) -> Life:
    life = Life().claimed().changed(sealed=True)
    life.now += 2 * SECOND
    lapse = Lapse(1, 1, "a", "healed")
    given = {"token": 1, "worker_id": "a", "sealed": True, **result}
    life.ended(result=given, token=2, worker_id="sweeper")
    life.lapses.append(lapse)
    return life


def test_a_sealed_job_is_healed_with_the_result_that_was_sealed() -> None:
    assert check(healed().history())[1] == []
    assert rules_broken(healed(token=2).history()) == {"stale write"}


BROKEN_STEPS: dict[str, tuple[str, Life]] = {
    "a token goes back": (
        "token order",
        Life().claimed().requeued().claimed("b").changed(token=1),
    ),
    "a claim mints no token": ("token order", Life().claimed(token=0).ended()),
    "a claim skips a token": ("token order", Life().claimed(token=2).ended()),
    "a token passes to another worker": (
        "one worker",
        Life().claimed().changed(worker_id="b").ended(),
    ),
    "a stranger completes": ("one worker", Life().claimed().ended(worker_id="b")),
    "a lease is swept before it is over": (
        "overlap",
        Life().claimed().requeued(outcome="lost", token=2).claimed("b").ended(),
    ),
    "a lease is reclaimed before it is over": (
        "overlap",
        Life().claimed().changed(token=2, worker_id="b").ended(),
    ),
    "an accepted cancellation completes": (
        "cancel",
        Life().claimed().changed(cancel_requested=True).ended(),
    ),
    "an accepted cancellation is forgotten": (
        "cancel",
        Life().claimed().changed(cancel_requested=True).changed(cancel_requested=False).ended(),
    ),
    "an accepted cancellation is queued again": (
        "cancel",
        Life()
        .claimed()
        .changed(cancel_requested=True)
        .requeued(cancel_requested=False)
        .claimed("b")
        .ended(),
    ),
    "a cancellation stands beside a seal": (
        "cancel",
        Life().claimed().changed(sealed=True, cancel_requested=True).ended("cancelled"),
    ),
    "a sealed job is run again": (
        "seal",
        Life().claimed().changed(sealed=True).lapsed(sealed=False).claimed("b").ended(),
    ),
    "a sealed job fails": ("seal", Life().claimed().changed(sealed=True).ended("failed")),
    "a stale worker notes progress": (
        "stale write",
        Life().claimed().requeued().claimed("b").changed(progress=1).ended(),
    ),
    "progress comes with a requeue": (
        "stale write",
        Life().claimed().requeued(progress=1).claimed("b").ended(),
    ),
    "a claim spends no attempt": ("attempts", Life().claimed(attempt=0).ended()),
    "more attempts than there may be": (
        "attempts",
        Life().claimed().requeued().claimed().requeued().claimed().requeued().claimed().ended(),
    ),
    "an attempt is refunded although its lapse is charged": (
        "attempts",
        Life().claimed().lapsed(attempt=0).claimed("b").ended(),
    ),
    "a lapse out of a batch is charged": (
        "poison",
        Life().claimed(buffered=True).lapsed().claimed("b").ended(),
    ),
    "a solo job is claimed in a batch": (
        "poison",
        Life()
        .claimed(buffered=True)
        .lapsed(attempt=0, solo=True)
        .claimed("b", buffered=True)
        .ended(),
    ),
    "a completed job is run again": (
        "one end",
        done().retried().claimed("b").ended(),
    ),
    "a lease outlasts the timeout": (
        "timeout",
        Life().claimed(timeout=SECOND // 2).ended(),
    ),
    "a sweep completes what was not sealed": (
        "states",
        Life().claimed().changed(lease_expires_at=0).ended(token=2, worker_id="sweeper"),
    ),
    "a job runs without a claim": ("states", Life().ended()),
    "a job is never ended": ("one end", Life().claimed()),
}


@pytest.mark.parametrize("name", BROKEN_STEPS)
def test_a_step_that_no_verb_makes_is_found(name: str) -> None:
    rule, life = BROKEN_STEPS[name]
    assert rule in rules_broken(life.history())


def test_a_job_that_is_in_two_places_is_found() -> None:
    life = done()
    stays = [version for version in life.versions if version.op != "delete"]
    assert rules_broken(life.history(versions=stays)) == {"one place"}
    assert rules_broken(life.history(rows=[life.row, life.row])) == {"one place"}


def test_a_job_that_moves_in_two_transactions_is_found() -> None:
    life = done()
    moved = [*life.versions[:-1], replace(life.last, xid=2)]
    assert rules_broken(life.history(versions=moved)) == {"one place"}


def test_a_job_that_is_gone_is_found() -> None:
    life = done()
    assert rules_broken(life.history(rows=[])) == {"nothing lost"}
    gone = life.versions[:-1]
    assert rules_broken(life.history(versions=gone, rows=[])) >= {"nothing lost", "one place"}


def test_a_row_that_is_not_as_its_last_version_is_found() -> None:
    life = done()
    spoilt = replace(life.row, status="failed")
    assert "one place" in rules_broken(life.history(rows=[spoilt]))
    assert rules_broken(life.history(versions=[], starts=[])) == {"one place"}


def test_a_batch_that_was_answered_must_be_there() -> None:
    lives = [Life(n, batch=1).claimed().ended() for n in (1, 2)]
    assert rules_broken(history(*lives, batches=[Batch(1, 2, (1, 2))])) == set()
    assert rules_broken(history(*lives, batches=[Batch(1, 3, (1, 2, 3))])) == {"nothing lost"}


def test_a_batch_that_was_not_answered_is_there_as_a_whole_or_not_at_all() -> None:
    lives = [Life(n, batch=1).claimed().ended() for n in (1, 2)]
    unanswered = [Batch(1, 2, None), Batch(2, 7, None)]
    assert rules_broken(history(*lives, batches=unanswered)) == set()
    assert rules_broken(history(lives[0], batches=unanswered)) == {"nothing lost"}


@pytest.mark.parametrize(
    ("starts", "rule"),
    [
        ([], "starts"),
        ([Start(1, 1, "b")], "starts"),
        ([Start(1, 1, "a"), Start(1, 1, "a")], "starts"),
        ([Start(1, 1, "a"), Start(1, 2, "a")], "starts"),
        ([Start(1, token, "a") for token in (1, 2, 3, 4)], "attempts"),
    ],
)
def test_a_start_that_no_lease_allows_is_found(starts: list[Start], rule: str) -> None:
    assert rule in rules_broken(done().history(starts=starts))


def test_a_job_given_back_as_not_started_must_not_have_been_started() -> None:
    life = Life().claimed().requeued(attempt=0).claimed("b").ended()
    assert rules_broken(life.history()) == {"starts"}


def test_a_batch_may_be_blamed_on_a_job_only_once_until_it_reports() -> None:
    life = Life().claimed(buffered=True).lapsed(attempt=0, solo=True)
    life.changed(solo=True).claimed("b", buffered=True).lapsed(attempt=0, solo=True)
    life.claimed("c").ended()
    assert "poison" in rules_broken(life.history())

    reported = Life().claimed(buffered=True).lapsed(attempt=0, solo=True).claimed("b")
    reported.requeued(solo=False).claimed("c", buffered=True).lapsed(attempt=1, solo=True)
    assert rules_broken(reported.claimed("d").ended().history()) == set()


def ledger() -> Life:
    return Life(kind="ledger").claimed().ended()


CHILD = Life(2, kind="receipt").claimed().ended()


@pytest.mark.parametrize(
    ("effects", "rule"),
    [
        ([], "effects"),
        ([Effect(1, 1, "a", 2, 1), Effect(1, 1, "a", 2, 1)], "effects"),
        ([Effect(1, 0, "a", 2, 1)], "effects"),
        ([Effect(1, 1, "a", 2, 7)], "effects"),
        ([Effect(1, 1, "a", 3, 1)], "nothing lost"),
    ],
)
def test_an_effect_that_is_missing_doubled_or_stale_is_found(
    effects: list[Effect], rule: str
) -> None:
    assert rules_broken(history(ledger(), CHILD, effects=effects)) == {rule}


def test_an_effect_of_a_job_that_did_not_complete_is_found() -> None:
    good = [Effect(1, 1, "a", 2, 1)]
    assert rules_broken(history(ledger(), CHILD, effects=good)) == set()
    failed = Life(kind="ledger").claimed().ended("failed")
    assert rules_broken(history(failed, CHILD, effects=good)) == {"effects"}


def test_a_result_of_another_lease_is_found() -> None:
    life = Life().claimed().requeued().claimed("b").ended(result={"token": 1, "worker_id": "a"})
    assert rules_broken(life.history()) == {"stale write"}


@pytest.mark.parametrize(
    ("acts", "good"),
    [
        ([("cancel", "ok")], False),
        ([("cancel", "already")], False),
        ([("retry", "ok"), ("cancel", "ok")], False),
        ([("cancel", "ok"), ("retry", "refused")], False),
        ([("cancel", "ok"), ("retry", "ok")], True),
        ([("cancel", "ok"), ("retry", None)], True),
        ([("cancel", None)], True),
        ([("cancel", "refused"), ("cancel", "sealed"), ("cancel", "deferred")], True),
    ],
)
def test_a_completed_job_had_no_accepted_cancellation_that_stands(
    acts: list[tuple[str, str | None]], good: bool
) -> None:
    given = [Act(verb, 1, verdict) for verb, verdict in acts]
    assert rules_broken(done().history(acts=given)) == (set() if good else {"cancel"})


@pytest.mark.parametrize("lapses", [[], [Lapse(1, 1, "b", "failed")], [Lapse(1, 2, "a", "failed")]])
def test_an_attempt_that_is_not_noted_as_it_ended_is_found(lapses: list[Lapse]) -> None:
    life = Life().claimed().requeued().claimed("b").ended()
    assert rules_broken(life.history()) == set()
    assert rules_broken(life.history(lapses=lapses)) == {"attempts"}
