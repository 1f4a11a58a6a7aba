"""O33: an accepted cancellation of a running job holds, whatever its handler does then."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from tenure import Cancel, Fail, Job, JobCancelled, JobStatus, Release, Retry, Tenure, Verdict
from tests.runner.conftest import Start
from tests.runner.waiting import PATIENCE, comes, ends, eventually

ENDS: dict[str, Callable[[], Any]] = {
    "completes": lambda: "done",
    "fails": lambda: _raise(OSError("refused")),
    "asks for a retry": lambda: _raise(Retry(after=timedelta(0))),
    "fails for good": lambda: _raise(Fail("no such account")),
    "gives it back": lambda: _raise(Release()),
    "cancels it too": lambda: _raise(Cancel("pointless")),
}


def _raise(error: Exception) -> None:
    raise error


@pytest.mark.parametrize("how", ENDS)
def test_a_job_that_was_cancelled_while_it_ran_ends_cancelled_however_its_handler_ends(
    app: Tenure, start: Start, how: str
) -> None:
    """Also when it completes: the cancellation was accepted first."""
    started, let_go = threading.Event(), threading.Event()

    @app.task(retry_base=timedelta(0))
    def work(job: Job) -> Any:
        started.set()
        assert let_go.wait(PATIENCE)
        return ENDS[how]()

    @app.task
    def next_one(job: Job) -> str:
        return "the runner goes on"

    start()
    handle = app.enqueue(work, dedup_key="order 7")
    comes(started, "the job started")
    answers = [app.cancel(handle.job_id) for _ in range(2)]
    assert app.enqueue(work, dedup_key="order 7").job_id == handle.job_id
    let_go.set()

    ends(app, handle.job_id, JobStatus.CANCELLED)
    assert [answer.verdict for answer in answers] == [Verdict.OK, Verdict.ALREADY]
    assert app.cancel(handle.job_id).verdict is Verdict.ALREADY
    with pytest.raises(JobCancelled):
        handle.result(PATIENCE)
    record = app.job(handle.job_id)
    assert record is not None
    assert (record.attempt, record.result) == (1, None)
    again = app.enqueue(next_one, dedup_key="order 7")
    assert again.created
    assert again.result(PATIENCE) == "the runner goes on"


def test_a_job_that_was_cancelled_when_its_worker_died_ends_cancelled(
    app: Tenure, start: Start
) -> None:
    app.task(name="work", retry_base=timedelta(0))(lambda job: "never")
    with closing(app.store.control_plane()) as plane:
        job_id = app.enqueue("work").job_id
        assert plane.claim_job(job_id, "gone", lease_for=timedelta(seconds=1)) is not None
    assert app.cancel(job_id).verdict is Verdict.OK

    start(sweep_every=timedelta(milliseconds=100))

    ends(app, job_id, JobStatus.CANCELLED)
    [attempt] = app.store.records().attempts(job_id)
    assert (attempt.verb, attempt.outcome) == ("sweep", "cancelled")


def test_a_job_that_has_completed_is_not_cancelled(app: Tenure) -> None:
    app.task(name="work")(lambda job: "done")
    handle = app.enqueue("work")
    app.drain()

    assert app.cancel(handle.job_id).verdict is Verdict.REFUSED
    assert handle.result(timeout=0) == "done"


def test_jobs_cancelled_in_the_instant_of_their_claim_end_once_and_stop_no_runner(
    app: Tenure, start: Start
) -> None:
    """Whichever comes first: cancelled before it started, or while it ran, or completed before."""
    ran: set[int] = set()

    @app.task
    def work(job: Job) -> str:
        ran.add(job.job_id)
        return "done"

    runner = start(slots=4)
    ids = [app.enqueue(work).job_id for _ in range(40)]
    answers = {job_id: app.cancel(job_id).verdict for job_id in ids}

    def statuses() -> dict[int, JobStatus]:
        found = {job_id: app.job(job_id) for job_id in ids}
        return {job_id: job.status for job_id, job in found.items() if job is not None}

    ended = (JobStatus.CANCELLED, JobStatus.COMPLETED)
    eventually(lambda: all(status in ended for status in statuses().values()), "all have ended")
    for job_id, status in statuses().items():
        accepted = answers[job_id] in (Verdict.OK, Verdict.DEFERRED)
        assert answers[job_id] in (Verdict.OK, Verdict.REFUSED, Verdict.DEFERRED)
        if answers[job_id] is Verdict.OK:
            assert status is JobStatus.CANCELLED
        elif not accepted:
            assert status is JobStatus.COMPLETED
            assert job_id in ran
    assert app.enqueue(work).result(PATIENCE) == "done"
    assert runner.alive
