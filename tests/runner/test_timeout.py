"""Timeouts: told in time to be recorded, then enforced as far as each place can."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tenure import Job, JobStatus, Tenure, TimedOut
from tenure.records import AttemptRecord
from tenure.slots import Ended, Slots
from tenure.standing import Standing
from tests.runner import process_tasks
from tests.runner.conftest import Start
from tests.runner.fakes import Clock, lease
from tests.runner.process_tasks import notes
from tests.runner.waiting import PATIENCE, comes, ends, eventually

SECOND = timedelta(seconds=1)
LONG = timedelta(seconds=3)
"""Leaves half a second to record that it is over, on a machine that has other things to do."""

NONE = timedelta(0)


def only_attempt(app: Tenure, job_id: int) -> AttemptRecord:
    ends(app, job_id, JobStatus.FAILED)
    [attempt] = app.store.records().attempts(job_id)
    return attempt


@pytest.mark.parametrize(("timeout", "notice"), [(0.1, 0.02), (5, 1), (10, 2), (3600, 2)])
def test_a_handler_is_told_a_fifth_of_its_timeout_or_two_seconds_before_the_end(
    timeout: float, notice: float
) -> None:
    clock = Clock()
    granted = lease(timeout=timedelta(seconds=timeout))
    standing = Standing(granted, sent=clock.now, lease_for=timedelta(days=1), monotonic=clock)

    clock.now += timeout - notice - 0.01
    before = standing.why_stop()
    clock.now += 0.011

    assert before is None
    assert isinstance(standing.why_stop(), TimedOut)
    assert standing.lost is None


def test_a_check_after_the_timeout_fails_the_attempt_while_the_lease_is_good(
    app: Tenure, start: Start
) -> None:
    @app.task(max_attempts=1, timeout=2 * SECOND)
    def asks(job: Job) -> None:
        eventually(lambda: job.check(), "the handler was told")

    start()

    attempt = only_attempt(app, app.enqueue(asks).job_id)

    assert (attempt.verb, attempt.outcome, attempt.error_type) == ("fail", "failed", "TimedOut")
    assert attempt.ended_at - attempt.started_at < 2 * SECOND


def test_progress_tells_as_well(sqlite_app: Tenure, start: Start) -> None:
    app = sqlite_app

    @app.task(max_attempts=1, timeout=2 * SECOND)
    def reports(job: Job) -> None:
        eventually(lambda: not job.progress(1), "the handler was told")

    start(app)

    assert only_attempt(app, app.enqueue(reports).job_id).error_type == "TimedOut"


def test_a_timed_out_attempt_is_followed_by_another(app: Tenure, start: Start) -> None:
    @app.task(timeout=2 * SECOND, retry_base=NONE)
    def second_time_lucky(job: Job) -> str | None:
        if job.attempt == 1:
            eventually(lambda: job.check(), "the handler was told")
        return job.last_error

    start()

    result = app.enqueue(second_time_lucky).result(PATIENCE)
    assert str(result).startswith("TimedOut: ")


def test_an_async_handler_is_cancelled_in_time_for_the_failure_to_be_recorded(
    app: Tenure, start: Start
) -> None:
    seen: list[type[BaseException]] = []

    @app.task(max_attempts=1, timeout=2 * SECOND)
    async def waits(job: Job) -> None:
        try:
            await asyncio.Event().wait()
        except BaseException as error:
            seen.append(type(error))
            raise

    start()

    attempt = only_attempt(app, app.enqueue(waits).job_id)

    assert (attempt.verb, attempt.error_type) == ("fail", "TimedOut")
    assert "CancelledError" in (attempt.traceback or "")
    assert seen == [asyncio.CancelledError]


def a_child(app: Tenure, start: Start, path: Path) -> tuple[Any, int]:
    """A runner with one slot whose child is there already, and that child's pid."""
    pid = app.task(slots="process")(process_tasks.pid)
    start(app, slots=1)
    return pid, app.enqueue(pid, {"notes": str(path)}).result(PATIENCE)


def test_a_handler_in_a_child_is_interrupted_wherever_it_is(
    sqlite_app: Tenure, start: Start, tmp_path: Path
) -> None:
    app = sqlite_app
    sleeps = app.task(slots="process", max_attempts=1, timeout=LONG)(process_tasks.sleeps)
    pid, child = a_child(app, start, tmp_path / "before")

    attempt = only_attempt(app, app.enqueue(sleeps, {"notes": str(tmp_path / "notes")}).job_id)

    assert (attempt.verb, attempt.error_type) == ("fail", "TimedOut")
    assert "time.sleep" in (attempt.traceback or "")
    assert notes(tmp_path / "notes") == [str(child)]
    after = app.enqueue(pid, {"notes": str(tmp_path / "after")}).result(PATIENCE)
    assert after != child, "another job must not meet what was meant for this one"


def test_a_handler_in_a_child_that_pays_no_heed_is_killed_before_the_lease_ends(
    sqlite_app: Tenure, start: Start, tmp_path: Path
) -> None:
    app = sqlite_app
    deaf = app.task(slots="process", max_attempts=1, timeout=LONG)(process_tasks.deaf)
    a_child(app, start, tmp_path / "before")

    attempt = only_attempt(app, app.enqueue(deaf, {"notes": str(tmp_path / "notes")}).job_id)

    assert (attempt.verb, attempt.error_type) == ("fail", "TimedOut")
    assert (attempt.message or "").startswith("killed: ")
    assert notes(tmp_path / "notes")[1:] == ["deaf"]


def test_a_thread_that_pays_no_heed_is_swept_and_its_slot_given_to_others(
    app: Tenure, start: Start
) -> None:
    let_go, ended = threading.Event(), threading.Event()

    @app.task(max_attempts=1, timeout=timedelta(milliseconds=500))
    def hangs(job: Job) -> str:
        assert let_go.wait(PATIENCE)
        ended.set()
        return "too late"

    @app.task
    def works(job: Job) -> bool:
        return ended.is_set()

    runner = start(slots=1, sweep_every=timedelta(milliseconds=100))
    hanging = app.enqueue(hangs).job_id

    attempt = only_attempt(app, hanging)
    assert (attempt.verb, attempt.outcome) == ("sweep", "timed out")
    assert app.enqueue(works).result(PATIENCE) is False

    let_go.set()
    comes(ended, "the thread ended")
    eventually(lambda: runner.slots[0].idle == 1, "the slots were as many as before")
    record = app.job(hanging)
    assert record is not None
    assert (record.status, record.last_error) == ("failed", "timed out on the last attempt")


class Held:
    """A place whose handlers end when the test says so."""

    def __init__(self) -> None:
        self.started: list[tuple[Standing, Ended]] = []

    def start(self, standing: Standing, ended: Ended) -> None:
        self.started.append((standing, ended))

    def close(self) -> None: ...


def overdue(job_id: int) -> Standing:
    granted = lease(job_id=job_id, timeout=timedelta(milliseconds=100))
    return Standing(granted, sent=0.0, lease_for=timedelta(seconds=30))


def test_no_more_handlers_are_given_up_at_a_time_than_there_are_slots() -> None:
    place = Held()
    told: list[int] = []
    slots = Slots(
        ["default"],
        2,
        place_for=lambda _: place,
        ended=lambda standing, _: told.append(standing.lease.job_id),
        freed=lambda: None,
    )
    slots.add([overdue(1), overdue(2)])
    given_up = slots.give_up_overdue()
    slots.add([overdue(3), overdue(4)])
    refused = slots.give_up_overdue()
    standing, ended = place.started[0]
    ended(standing, None)

    later = slots.give_up_overdue()

    assert [s.lease.job_id for s in given_up] == [1, 2]
    assert refused == []
    assert [s.lease.job_id for s in later] == [3]
    assert told == [1, 2, 3], "each is told of once"


def test_a_handler_that_returns_within_the_notice_has_completed(
    sqlite_app: Tenure, start: Start
) -> None:
    app = sqlite_app

    @app.task(timeout=2 * SECOND)
    def just_in_time(job: Job) -> str:
        while True:
            try:
                job.check()
            except TimedOut:
                return "in time"

    start(app)

    assert app.enqueue(just_in_time).result(PATIENCE) == "in time"


def test_a_sealed_job_has_completed_although_its_handler_times_out(
    app: Tenure, start: Start
) -> None:
    @app.task(max_attempts=1, timeout=2 * SECOND)
    def sealed(job: Job) -> None:
        job.seal("sealed")
        eventually(lambda: job.check(), "the handler was told")

    start()

    assert app.enqueue(sealed).result(PATIENCE) == "sealed"


def test_a_stalled_loop_frees_the_slot_of_a_job_that_timed_out(
    sqlite_app: Tenure, start: Start
) -> None:
    app = sqlite_app
    let_go = threading.Event()

    @app.task(max_attempts=1, timeout=timedelta(milliseconds=500))
    async def blocks(job: Job) -> None:
        assert let_go.wait(PATIENCE)

    @app.task
    def works(job: Job) -> str:
        return "fine"

    start(app, slots=1)
    blocking = app.enqueue(blocks).job_id

    assert app.enqueue(works).result(PATIENCE) == "fine"
    let_go.set()
    with closing(app.store.control_plane()) as plane:
        plane.sweep("sweeper")
    ends(app, blocking, JobStatus.FAILED)
