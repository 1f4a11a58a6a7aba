"""What a handler returns or raises ends its job in a documented state, over both backends."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tenure import Job, JobRecord, Tenure
from tenure.records import AttemptRecord


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


NOT_STORABLE: dict[str, tuple[Any, str]] = {
    "a NUL in a value": ({"a": ["x", "x\0y"]}, "result.a[1]: a str with a NUL"),
    "a NUL in a key": ({"x\0": 1}, "the key 'x\\x00' is a str with a NUL"),
    "a lone surrogate": ("\ud800", "result: a str with a lone surrogate"),
    "NaN": ({"mean": float("nan")}, "result.mean: nan is not JSON"),
    "infinity": ([float("-inf")], "result[0]: -inf is not JSON"),
    "a decimal": ({"price": Decimal("1.10")}, "result.price: Decimal is not JSON"),
    "a datetime": (datetime(2026, 1, 1, tzinfo=UTC), "result: datetime is not JSON"),
    "a UUID": ([uuid.UUID(int=7)], "result[0]: UUID is not JSON"),
    "bytes": (b"x", "result: bytes is not JSON"),
    "a set": ({1, 2}, "result: set is not JSON"),
    "too large an int": (2**63, "result: an int beyond"),
    "too deep a list": (nested(20_000), "result is nested more than 64 deep"),
    "too large a value": ("x" * (1024 * 1024), "result is 1048578 bytes as JSON"),
}


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")


ERRORS: dict[str, tuple[Exception, str]] = {
    "very long": (RuntimeError("x" * 50_000_000), "x" * 8189 + "…"),
    "with a NUL and a lone surrogate": (RuntimeError("a\0b\ud800c"), "a\ufffdb\ufffdc"),
    "without a text to be had": (Unprintable(), "(its text cannot be had: RuntimeError)"),
}


@pytest.fixture
def ended(app: Tenure) -> dict[str, tuple[JobRecord, AttemptRecord]]:
    """What became of a job for each of the above, once a runner was done with all of them."""
    starts: list[str] = []

    @app.task(max_attempts=2)
    def bad(job: Job) -> Any:
        starts.append(job.payload)
        if job.payload in ERRORS:
            raise ERRORS[job.payload][0]
        return NOT_STORABLE[job.payload][0]

    @app.task
    def good(job: Job) -> str:
        return "fine"

    names = [*NOT_STORABLE, *ERRORS]
    added = app.enqueue_many([app.new_job(bad, name) for name in names])
    beside = app.enqueue(good).job_id
    app.worker(slots=4).run_until_idle()

    assert sorted(starts) == sorted(names)
    neighbour = app.job(beside)
    assert neighbour is not None
    assert neighbour.result == "fine"
    records = app.store.records()
    found = {}
    for name, answer in zip(names, added, strict=True):
        record = app.job(answer.job_id)
        assert record is not None
        [attempt] = records.attempts(answer.job_id)
        found[name] = (record, attempt)
    return found


def test_a_result_that_cannot_be_stored_fails_its_job_for_good(
    ended: dict[str, tuple[JobRecord, AttemptRecord]],
) -> None:
    """O22, O23, O25: the handler is not run again, and its neighbours complete."""
    for name, (_, message) in NOT_STORABLE.items():
        record, attempt = ended[name]
        assert (record.status, record.attempt, record.result) == ("failed", 1, None), name
        assert attempt.error_type == "result not storable"
        assert message in (attempt.message or ""), name
        assert (record.last_error or "").startswith("result not storable: "), name


def test_an_error_is_written_down_whatever_its_text_is(
    ended: dict[str, tuple[JobRecord, AttemptRecord]],
) -> None:
    """O24: cut, cleaned, and never the reason why a job does not end."""
    for name, (error, message) in ERRORS.items():
        record, attempt = ended[name]
        assert (record.shade, record.attempt) == ("retrying", 1), name
        assert attempt.error_type == type(error).__name__
        assert attempt.message == message, name
        assert len((record.last_error or "").encode()) <= 8 * 1024


def test_many_long_errors_do_not_pile_up(app: Tenure) -> None:
    """O24: the last 20 attempts of a job are kept."""

    @app.task(max_attempts=40)
    def fails(job: Job) -> None:
        raise RuntimeError("x" * 100_000)

    job_id = app.enqueue(fails, retry_base=timedelta(0)).job_id
    app.worker(slots=1).run_until_idle()

    record = app.job(job_id)
    assert record is not None
    assert (record.status, record.attempt) == ("failed", 40)
    assert len(app.store.records().attempts(job_id)) == 20


@pytest.mark.parametrize("name", [n for n in NOT_STORABLE if n != "too large a value"])
def test_a_payload_that_cannot_be_stored_is_refused_before_anything_is_written(
    sqlite_app: Tenure, name: str
) -> None:
    """O22, O23: with the path named; the same check comes before the SQL of either backend."""
    value, message = NOT_STORABLE[name]

    with pytest.raises(ValueError, match=r"payload") as refused:
        sqlite_app.enqueue("any", value)

    assert message.replace("result", "payload") in str(refused.value)
