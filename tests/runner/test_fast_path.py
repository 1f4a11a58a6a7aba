"""Jobs by the hundred: claimed ahead, settled together, and still each by itself."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, cast

import psycopg
import pytest

from tenure import Job, JobStatus, Outcome, ServerUnavailable, Tenure, WorkerRunner
from tenure.backing import Backing, Plane, backing_of
from tenure.slots import Slots
from tests.runner.conftest import Start
from tests.runner.waiting import comes, ends, eventually, status_of

SHORT = timedelta(seconds=0.4)


class Gate:
    """Opens planes whose `settle` waits at a gate; everything else is the backing's own."""

    def __init__(self, backing: Backing) -> None:
        self._backing = backing
        self.open_gate = threading.Event()
        self.waiting = threading.Event()
        self.claims: list[int] = []
        self.settles: list[int] = []
        self.before: list[Exception] = []
        """Raised, one for each settle, in its place."""
        self.after: list[Exception] = []
        """Raised, one for each settle, once it is done."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backing, name)

    def open(self) -> Plane:
        return cast(Plane, _Gated(self._backing.open(), self))


class _Gated:
    def __init__(self, plane: Plane, gate: Gate) -> None:
        self._plane = plane
        self._gate = gate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plane, name)

    def claim(self, *arguments: Any, **options: Any) -> Any:
        leases = self._plane.claim(*arguments, **options)
        if leases:
            self._gate.claims.append(len(leases))
        return leases

    def settle(self, worker_id: str, outcomes: Sequence[Outcome]) -> Any:
        self._gate.settles.append(len(outcomes))
        self._gate.waiting.set()
        assert self._gate.open_gate.wait(15)
        if self._gate.before:
            raise self._gate.before.pop(0)
        answers = self._plane.settle(worker_id, outcomes)
        if self._gate.after:
            raise self._gate.after.pop(0)
        return answers


@contextmanager
def running(runner: WorkerRunner) -> Iterator[WorkerRunner]:
    runner.start()
    try:
        yield runner
    finally:
        runner.stop(timedelta(0))


def test_claims_and_handlers_go_on_while_outcomes_are_being_written(app: Tenure) -> None:
    ran: Counter[int] = Counter()

    @app.task
    def count(job: Job) -> int:
        ran[job.payload] += 1
        return int(job.payload)

    jobs = app.enqueue_many([app.new_job(count, n) for n in range(1_000)])
    gate = Gate(backing_of(app.store))
    with running(WorkerRunner(gate, app.tasks, slots=4)) as runner:
        comes(gate.waiting, "the first outcomes were on their way")
        eventually(lambda: len(ran) == 1_000, "all jobs ran meanwhile")
        assert len(gate.settles) == 1
        gate.open_gate.set()
        eventually(lambda: runner.running == 0, "all outcomes were written")

    assert ran == Counter(range(1_000))
    assert len(gate.claims) < 50
    assert len(gate.settles) < 10
    for n, added in enumerate(jobs):
        record = app.job(added.job_id)
        assert record is not None
        assert (record.status, record.result, record.attempt) == ("completed", n, 1)


def test_an_outcome_whose_writing_fails_in_every_way_is_written_once(app: Tenure) -> None:
    """O11: the handler's return is never made a failure, and the answer lost with the connection
    is had by the next try as `already`."""
    ran: list[int] = []

    @app.task
    def once(job: Job) -> str:
        ran.append(job.attempt)
        return "done"

    gate = Gate(backing_of(app.store))
    gate.open_gate.set()
    gate.before = [
        psycopg.errors.QueryCanceled("57014"),
        psycopg.errors.QueryCanceled("57014"),
        psycopg.errors.DeadlockDetected("40P01"),
    ]
    gate.after = [ServerUnavailable("the connection dropped after the commit")]
    job_id = app.enqueue(once).job_id
    with running(WorkerRunner(gate, app.tasks, lease_for=SHORT)) as runner:
        eventually(lambda: not gate.after and runner.running == 0, "the outcome was written")

    record = app.job(job_id)
    assert record is not None
    assert (record.status, record.result, record.attempt) == ("completed", "done", 1)
    assert ran == [1]
    assert app.store.records().attempts(job_id) == []


def test_slow_handlers_leave_what_they_cannot_start_to_other_workers(
    app: Tenure, start: Start
) -> None:
    let_go = threading.Event()

    @app.task
    def slow(job: Job) -> None:
        assert let_go.wait(15)

    ids = [app.enqueue(slow).job_id for _ in range(6)]
    first, second = start(slots=2), start(slots=2)
    eventually(lambda: (first.running, second.running) == (2, 2), "both were busy")

    assert [status_of(app, job_id) for job_id in ids].count(JobStatus.QUEUED) == 2
    let_go.set()
    for job_id in ids:
        ends(app, job_id, JobStatus.COMPLETED)


def test_jobs_that_wait_for_their_turn_are_renewed_with_the_rest(
    app: Tenure, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead(monkeypatch, 4)
    started, let_go = threading.Event(), threading.Event()

    @app.task
    def work(job: Job) -> None:
        if job.payload == 0:
            started.set()
            assert let_go.wait(15)

    jobs = app.enqueue_many([app.new_job(work, n) for n in range(4)])
    runner = start(slots=1, lease_for=SHORT)
    comes(started, "the first one started")
    first_end = lease_end(app, jobs[3].job_id)

    eventually(
        lambda: lease_end(app, jobs[3].job_id) - first_end > SHORT, "the last one was renewed"
    )

    assert runner.running == 4
    let_go.set()
    for added in jobs:
        ends(app, added.job_id, JobStatus.COMPLETED)


def test_what_waited_behind_a_slow_job_is_had_by_another_worker_uncharged(
    app: Tenure, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead(monkeypatch, 4)
    started, let_go = threading.Event(), threading.Event()

    @app.task
    def work(job: Job) -> None:
        if job.payload == 0:
            started.set()
            assert let_go.wait(15)

    jobs = app.enqueue_many([app.new_job(work, n) for n in range(4)])
    runner = start(slots=1)
    comes(started, "the first one started")
    assert runner.running == 4
    start(slots=1)

    for added in jobs[1:]:
        ends(app, added.job_id, JobStatus.COMPLETED)
        record = app.job(added.job_id)
        assert record is not None
        assert record.attempt == 1
    assert status_of(app, jobs[0].job_id) is JobStatus.RUNNING
    let_go.set()


def ahead(monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    """Have jobs claimed in advance as if the handlers had been quick."""

    def learn(slots: Slots) -> None:
        slots._ahead = jobs

    monkeypatch.setattr(Slots, "_learn_pace", learn)


def lease_end(app: Tenure, job_id: int) -> Any:
    record = app.job(job_id)
    assert record is not None
    return record.lease_expires_at
