"""Outcomes on their way into the database: in company, each with a verdict of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from tenure import JobStatus, Outcome, ServerUnavailable, Settled, Verdict
from tenure.endings import MOST_BYTES
from tenure.ledger import Ledger
from tenure.settler import CLOGGED, ENOUGH, Settler
from tenure.standing import Standing
from tenure.values import Verb
from tests.runner.fakes import Clock, lease
from tests.runner.waiting import comes, eventually

Batch = list[Outcome]


class Database:
    """Answers each outcome with the next verdict of its job, or `ok`; keeps the batches."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, Batch]] = []
        self.answers: dict[int, list[Verdict]] = {}
        self.errors: list[Exception] = []
        self.refuses: Callable[[Outcome], Exception | None] = lambda outcome: None
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    def settle(self, worker_id: str, outcomes: Sequence[Outcome]) -> list[Settled]:
        self.batches.append((worker_id, list(outcomes)))
        self.entered.set()
        assert self.gate.wait(15)
        if self.errors:
            raise self.errors.pop(0)
        for outcome in outcomes:
            if (error := self.refuses(outcome)) is not None:
                raise error
        return [self._answer(outcome) for outcome in outcomes]

    def _answer(self, outcome: Outcome) -> Settled:
        left = self.answers.get(outcome.job_id)
        return Settled(
            job_id=outcome.job_id,
            token=outcome.token,
            verdict=left.pop(0) if left else Verdict.OK,
            status=JobStatus.COMPLETED,
            next_attempt_at=None,
        )

    @property
    def sizes(self) -> list[int]:
        return [len(batch) for _, batch in self.batches]

    def verbs(self, job_id: int) -> list[str]:
        return [o.verb for _, batch in self.batches for o in batch if o.job_id == job_id]


class Bench:
    """A settler over a database of answers, and the ledger of its leases."""

    def __init__(self, stack: ExitStack) -> None:
        self.database = Database()
        self.ledger = Ledger()
        self.told: list[tuple[int, Verdict | None]] = []
        self.settler = Settler(self.database.settle, self.ledger, told=self._tell)
        stack.callback(self.settler.stop)
        stack.callback(self.database.gate.set)

    def _tell(self, standing: Standing, outcome: Outcome, answer: Settled | None) -> None:
        self.told.append((outcome.job_id, None if answer is None else answer.verdict))

    def lease(self, job_id: int, *, clock: Clock | None = None, **changes: Any) -> Standing:
        read = clock or time.monotonic
        standing = Standing(
            lease(job_id=job_id, **changes),
            sent=read(),
            lease_for=timedelta(seconds=30),
            monotonic=read,
        )
        self.ledger.add(standing)
        return standing

    def put(self, standing: Standing, verb: Verb = Verb.COMPLETE, **given: Any) -> None:
        job_id, token = standing.key
        self.settler.put(standing, Outcome(job_id=job_id, token=token, verb=verb, **given))

    def end(self, *job_ids: int, **given: Any) -> None:
        """Have jobs completed together, and wait until all have an answer."""
        for standing in [self.lease(job_id) for job_id in job_ids]:
            self.put(standing, **given)
        self.settler.start()
        self.empty()

    def empty(self) -> None:
        eventually(lambda: len(self.ledger) == 0, "every lease had ended")


@pytest.fixture
def bench() -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(stack)


def test_outcomes_that_wait_together_are_written_together(bench: Bench) -> None:
    bench.end(*range(ENOUGH))

    assert bench.database.sizes == [ENOUGH]
    assert bench.told == [(job_id, Verdict.OK) for job_id in range(ENOUGH)]
    assert bench.settler.waiting == 0


def test_the_outcome_of_the_only_job_is_written_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.settler.LINGER", 3600)
    bench.settler.start()

    bench.put(bench.lease(1))

    bench.empty()


def test_few_outcomes_wait_a_moment_for_company_while_another_job_runs(bench: Bench) -> None:
    running = bench.lease(99)
    bench.settler.start()

    bench.put(bench.lease(1))

    eventually(lambda: bench.told == [(1, Verdict.OK)], "it was written although it was alone")
    assert bench.ledger.all() == [running]


def test_enough_outcomes_do_not_wait_for_more(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.settler.LINGER", 3600)
    bench.lease(999)
    bench.settler.start()

    for standing in [bench.lease(job_id) for job_id in range(ENOUGH)]:
        bench.put(standing)

    eventually(lambda: len(bench.told) == ENOUGH, "all were written")


def test_what_comes_while_a_statement_is_under_way_goes_into_the_next(bench: Bench) -> None:
    bench.database.gate.clear()
    first = bench.lease(1)
    bench.settler.start()
    bench.put(first)
    comes(bench.database.entered, "the first statement was under way")

    for standing in [bench.lease(job_id) for job_id in range(2, 52)]:
        bench.put(standing)
    bench.database.gate.set()

    bench.empty()
    assert bench.database.sizes == [1, 50]


def test_a_deferred_outcome_holds_up_no_other(bench: Bench) -> None:
    bench.database.answers[1] = [Verdict.DEFERRED] * 4

    bench.end(1, 2, 3)

    assert [job_id for job_id, _ in bench.told] == [2, 3, 1]
    assert bench.database.sizes == [3, 1, 1, 1, 1]


def test_each_answer_leads_to_the_verb_that_ends_the_job(bench: Bench) -> None:
    bench.database.answers = {1: [Verdict.CANCEL_REQUESTED], 2: [Verdict.SEALED]}
    cancelled, sealed, already = (bench.lease(job_id) for job_id in (1, 2, 3))
    bench.database.answers[3] = [Verdict.ALREADY]
    bench.put(cancelled)
    bench.put(sealed, Verb.RELEASE)
    bench.put(already)
    bench.settler.start()

    bench.empty()

    assert bench.database.verbs(1) == ["complete", "acknowledge_cancel"]
    assert bench.database.verbs(2) == ["release", "complete"]
    assert bench.database.verbs(3) == ["complete"]


def test_a_lost_outcome_is_logged_and_dropped_alone(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.database.answers[1] = [Verdict.LOST]

    bench.end(1, 2)

    assert bench.told == [(1, Verdict.LOST), (2, Verdict.OK)]
    [record] = [r for r in caplog.records if "is lost" in r.getMessage()]
    assert record.__dict__["job_id"] == 1


def test_a_failed_completion_write_is_tried_again_and_never_made_a_failure(bench: Bench) -> None:
    """O11: a cancelled statement twice, a deadlock, then a drop after the commit."""
    bench.database.errors = [
        psycopg.errors.QueryCanceled("57014"),
        psycopg.errors.QueryCanceled("57014"),
        psycopg.errors.DeadlockDetected("40P01"),
        ServerUnavailable("the connection dropped after the commit"),
    ]
    bench.database.answers[1] = [Verdict.ALREADY]

    bench.end(1)

    assert bench.database.verbs(1) == ["complete"] * 5
    assert bench.told == [(1, Verdict.ALREADY)]


def test_tries_end_with_the_lease_and_one_more_after_it(bench: Bench) -> None:
    clock = Clock()

    def fail_and_age(outcome: Outcome) -> Exception:
        clock.now += 20
        return ServerUnavailable("down")

    bench.database.refuses = fail_and_age
    bench.put(bench.lease(1, clock=clock))
    bench.settler.start()

    bench.empty()

    # Two while the lease was good, and the one after its loss that tells already from lost.
    assert bench.database.verbs(1) == ["complete"] * 3
    assert bench.told == [(1, None)]


def test_nothing_is_written_for_a_lease_that_was_lost_before(bench: Bench) -> None:
    clock = Clock()
    standing = bench.lease(1, clock=clock)
    clock.now += 30

    bench.put(standing)
    bench.settler.start()

    bench.empty()
    assert bench.database.batches == []


def test_an_outage_is_not_asked_about_for_every_worker_id_in_turn(bench: Bench) -> None:
    bench.database.errors = [ServerUnavailable("down")]
    for job_id, worker_id in [(1, "before"), (2, "after")]:
        bench.put(bench.lease(job_id, worker_id=worker_id))
    bench.settler.start()

    bench.empty()

    assert len(bench.database.batches) == 3
    assert {name for name, _ in bench.database.batches[1:]} == {"before", "after"}


def test_what_the_server_refuses_fails_alone_and_for_good(bench: Bench) -> None:
    def refuse(outcome: Outcome) -> Exception | None:
        poisoned = outcome.job_id == 7 and outcome.verb is Verb.COMPLETE
        return psycopg.errors.UntranslatableCharacter("22P05") if poisoned else None

    bench.database.refuses = refuse

    bench.end(*range(20))

    assert sorted(bench.told) == [(job_id, Verdict.OK) for job_id in range(20)]
    assert bench.database.verbs(7) == ["complete", "complete", "fail"]
    [failure] = [o.failure for _, batch in bench.database.batches for o in batch if o.failure]
    assert (failure.error_type, failure.retryable) == ("result not storable", False)


def test_an_error_that_comes_again_and_again_is_kept_to_the_outcome_that_has_it(
    bench: Bench,
) -> None:
    def refuse(outcome: Outcome) -> Exception | None:
        if outcome.job_id != 1 or len(bench.told) == 2:
            return None
        return psycopg.errors.InternalError_("of this one job")

    bench.database.refuses = refuse

    bench.end(1, 2, 3)

    assert {job_id for job_id, _ in bench.told[:2]} == {2, 3}


class Hostile(dict[str, int]):
    def __iter__(self) -> Any:
        raise RuntimeError("no")

    def items(self) -> Any:
        raise RuntimeError("no")


@pytest.mark.parametrize("result", [Decimal(1), "x" * 2**20, float("nan"), Hostile(a=1)])
def test_a_result_that_is_no_json_never_gets_to_the_others(bench: Bench, result: Any) -> None:
    bench.put(bench.lease(1), result=result)
    bench.put(bench.lease(2), result={"fine": True})
    bench.settler.start()

    bench.empty()

    assert len(bench.database.batches) == 1
    assert bench.database.verbs(1) == ["fail"]
    assert bench.database.verbs(2) == ["complete"]


def test_an_end_that_can_never_be_stored_is_left_to_lapse(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.database.refuses = lambda outcome: psycopg.DataError("never")

    bench.end(1)

    assert bench.database.verbs(1) == ["complete", "fail"]
    assert "its lease will lapse" in caplog.text


def test_two_leases_of_one_job_are_written_one_after_the_other(bench: Bench) -> None:
    for standing in [bench.lease(1, token=1), bench.lease(1, token=2), bench.lease(2)]:
        bench.put(standing)
    bench.settler.start()

    bench.empty()

    assert sorted(bench.database.sizes) == [1, 2]


def test_a_statement_carries_only_so_much(bench: Bench) -> None:
    bench.end(*range(12), result="x" * (MOST_BYTES // 5))

    assert bench.database.sizes == [4, 4, 4]


def test_a_stop_tries_once_more_what_waits(bench: Bench) -> None:
    bench.database.errors = [ServerUnavailable("down")] * 3
    bench.put(bench.lease(1))
    bench.settler.start()
    eventually(lambda: len(bench.database.batches) == 3, "three tries were made")

    bench.settler.stop()

    assert bench.told == [(1, Verdict.OK)]


def test_what_somebodys_hook_raises_does_not_end_the_settler(bench: Bench) -> None:

    def tell(*_: object) -> None:
        raise RuntimeError("a hook of somebody's")

    bench.settler._told = tell
    bench.end(1)
    bench.settler._told = bench._tell

    bench.put(bench.lease(2))
    bench.empty()

    assert bench.database.verbs(1) == ["complete"]
    assert bench.told == [(2, Verdict.OK)]


def test_who_was_told_to_begin_no_more_is_told_once_when_there_is_room_again(bench: Bench) -> None:
    eased = threading.Semaphore(0)
    settler = Settler(bench.database.settle, bench.ledger, eased=eased.release)
    standings = [bench.lease(job_id) for job_id in range(CLOGGED)]
    for standing in standings[1:]:
        settler.put(standing, Outcome(*standing.key, Verb.COMPLETE))
    assert not settler.clogged()

    settler.put(standings[0], Outcome(*standings[0].key, Verb.COMPLETE))
    assert settler.clogged()

    settler.start()
    bench.empty()
    settler.stop()
    assert not settler.clogged()
    assert eased.acquire(blocking=False)
    assert not eased.acquire(blocking=False)


def test_nobody_is_told_of_room_who_did_not_miss_it(bench: Bench) -> None:
    eased = threading.Semaphore(0)
    settler = Settler(bench.database.settle, bench.ledger, eased=eased.release)
    for standing in [bench.lease(job_id) for job_id in range(CLOGGED)]:
        settler.put(standing, Outcome(*standing.key, Verb.COMPLETE))
    settler.start()
    bench.empty()
    settler.stop()

    assert not eased.acquire(blocking=False)
