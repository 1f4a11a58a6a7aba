"""How a handler and its task decide whether a job is tried again, over both backends."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tenure import (
    Cancel,
    Fail,
    InvalidArgument,
    Job,
    JobRecord,
    Release,
    Retry,
    Tenure,
    WorkerRunner,
)
from tests.runner.waiting import eventually

HOUR = timedelta(hours=1)


def run_once(app: Tenure, handler: Callable[[Job], Any], **settings: Any) -> JobRecord:
    """The job after a runner has done with it what was due."""
    app.task(name="once", **settings)(handler)
    job_id = app.enqueue("once").job_id
    app.worker(slots=1).run_until_idle()
    record = app.job(job_id)
    assert record is not None
    return record


def raising(error: Exception, cause: Exception | None = None) -> Callable[[Job], None]:
    def handler(job: Job) -> None:
        raise error from cause

    return handler


def waits(record: JobRecord) -> timedelta:
    assert record.next_attempt_at is not None
    return record.next_attempt_at - datetime.now(UTC)


def test_a_retry_waits_as_long_as_the_handler_says(app: Tenure) -> None:
    record = run_once(app, raising(Retry("the bank is closed", after=HOUR)))

    assert (record.shade, record.attempt) == ("retrying", 1)
    assert record.last_error == "Retry: the bank is closed"
    assert timedelta(minutes=55) < waits(record) <= HOUR


def test_a_retry_without_a_delay_waits_for_the_jobs_own_backoff(app: Tenure) -> None:
    record = run_once(app, raising(Retry()), retry_base=HOUR)

    assert record.shade == "retrying"
    assert timedelta(minutes=40) < waits(record) <= HOUR


def test_a_retry_on_the_last_attempt_fails_the_job(app: Tenure) -> None:
    record = run_once(app, raising(Retry("again", after=HOUR)), max_attempts=1)

    assert (record.status, record.last_error) == ("failed", "Retry: again")


def test_a_signal_that_was_raised_from_an_error_is_recorded_as_that_error(app: Tenure) -> None:
    record = run_once(app, raising(Retry(after=HOUR), ConnectionError("refused")))

    assert record.last_error == "ConnectionError: refused"
    with app.producer.planes.lent() as plane:
        assert plane.job(record.job_id) == record
    [row] = app.store.records().attempts(record.job_id)
    assert (row.error_type, row.message) == ("ConnectionError", "refused")


def test_a_fail_is_not_tried_again(app: Tenure) -> None:
    record = run_once(app, raising(Fail("no such account")))

    assert (record.status, record.attempt, record.max_attempts) == ("failed", 1, 5)
    assert record.last_error == "Fail: no such account"


def test_a_release_gives_the_job_back_without_an_error(app: Tenure) -> None:
    record = run_once(app, raising(Release(after=HOUR)))

    assert (record.status, record.attempt, record.last_error) == ("queued", 1, None)
    assert timedelta(minutes=55) < waits(record) <= HOUR
    [row] = app.store.records().attempts(record.job_id)
    assert (row.verb, row.outcome, row.error_type) == ("release", "released", None)


def test_a_release_on_the_last_attempt_fails_the_job(app: Tenure) -> None:
    record = run_once(app, raising(Release(after=HOUR)), max_attempts=1)

    assert (record.status, record.last_error) == ("failed", "given back on the last attempt")


def test_a_handler_may_cancel_its_own_job(app: Tenure) -> None:
    record = run_once(app, raising(Cancel("the order is gone")))

    assert (record.status, record.attempt) == ("cancelled", 1)
    assert record.last_error == "Cancel: the order is gone"
    [row] = app.store.records().attempts(record.job_id)
    assert (row.outcome, row.message) == ("cancelled", "the order is gone")


@pytest.mark.parametrize(
    ("settings", "error", "status"),
    [
        ({"no_retry_on": KeyError}, KeyError("id"), "failed"),
        ({"no_retry_on": (KeyError, ValueError)}, UnicodeError("é"), "failed"),
        ({"no_retry_on": KeyError}, ValueError("odd"), "queued"),
        ({"retry_on": OSError}, ConnectionError("refused"), "queued"),
        ({"retry_on": OSError}, ValueError("odd"), "failed"),
        ({"retry_on": OSError, "no_retry_on": FileNotFoundError}, FileNotFoundError(), "failed"),
        ({"retry_on": OSError, "no_retry_on": FileNotFoundError}, TimeoutError(), "queued"),
        ({"retry_on": ()}, ValueError("odd"), "failed"),
        ({"retry_on": OSError}, Retry("all the same"), "queued"),
        ({"no_retry_on": Exception}, Retry("all the same"), "queued"),
    ],
    ids=str,
)
def test_a_task_says_which_exceptions_are_worth_another_attempt(
    sqlite_app: Tenure, settings: dict[str, Any], error: Exception, status: str
) -> None:
    record = run_once(sqlite_app, raising(error), retry_base=HOUR, **settings)

    assert record.status == status


def test_exceptions_that_are_not_worth_it_fail_the_job_on_both_backends(app: Tenure) -> None:
    record = run_once(app, raising(ValueError("odd")), no_retry_on=ValueError)

    assert (record.status, record.attempt) == ("failed", 1)


@pytest.mark.parametrize(
    "settings",
    [{"retry_on": "OSError"}, {"no_retry_on": [OSError]}, {"no_retry_on": None}, {"retry_on": int}],
    ids=str,
)
def test_what_is_no_exception_is_refused_when_the_task_is_made(
    sqlite_app: Tenure, settings: dict[str, Any]
) -> None:
    with pytest.raises(InvalidArgument, match="no class of exceptions"):
        sqlite_app.task(**settings)(raising(ValueError()))


@pytest.mark.parametrize("signal", [Retry, Release])
def test_a_delay_that_no_job_may_have_is_refused_where_it_is_raised(signal: Any) -> None:
    for after in (timedelta(days=4000), timedelta(seconds=-1), 5):
        with pytest.raises(InvalidArgument, match="after is"):
            signal(after=after)


@pytest.mark.parametrize(
    "signal", [Retry("a", after=HOUR), Release("b", after=HOUR), Fail("c"), Cancel("d")]
)
def test_a_signal_survives_the_way_between_processes(signal: Any) -> None:
    copy = pickle.loads(pickle.dumps(signal))

    assert type(copy) is type(signal)
    assert (copy.message, str(copy)) == (signal.message, str(signal))
    assert getattr(copy, "after", None) == getattr(signal, "after", None)


def test_the_handler_sees_what_came_before(app: Tenure) -> None:
    seen: list[tuple[int, int, str | None, Any, Any]] = []

    @app.task(max_attempts=3, retry_base=timedelta(0))
    def second_time(job: Job) -> None:
        seen.append((job.attempt, job.max_attempts, job.last_error, job.earlier_progress, job.meta))
        job.progress({"done": job.attempt})
        if job.attempt < 2:
            raise ConnectionError("refused")

    app.enqueue(second_time, meta={"trace": "7"})
    app.worker().run_until_idle()

    assert seen == [
        (1, 3, None, None, {"trace": "7"}),
        (2, 3, "ConnectionError: refused", {"done": 1}, {"trace": "7"}),
    ]


def test_a_kind_that_nobody_knows_is_given_back_with_growing_delays(
    app: Tenure, caplog: pytest.LogCaptureFixture
) -> None:
    """For 1 s at first, uncharged; once its handler is deployed, the job runs."""
    job_id = app.enqueue("not deployed yet", max_attempts=1).job_id

    def was_given_back() -> bool:
        record = app.job(job_id)
        return record is not None and record.token > 0 and record.status == "queued"

    runner = WorkerRunner(app.store, {}, queues=["default"])
    runner.start()
    eventually(was_given_back, "the job was given back")
    runner.stop()

    record = app.job(job_id)
    assert record is not None
    assert (record.attempt, record.last_error) == (0, None)
    assert timedelta(0) < waits(record) <= timedelta(seconds=2)
    assert "'not deployed yet', which has no handler here" in caplog.text

    app.task(name="not deployed yet")(lambda job: "at last")
    later = app.worker()
    later.start()
    eventually(lambda: (found := app.job(job_id)) and found.status == "completed", "it ran")
    later.stop()
