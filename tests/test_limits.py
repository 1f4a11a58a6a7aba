"""What an argument may be, on both backends alike."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tenure import limits
from tenure.errors import InvalidArgument
from tenure.requests import check_job, check_jobs, check_leases, check_outcomes, cut_failure
from tenure.values import Failure, NewJob, Outcome, Verb

FAILURE = Failure(error_type="ValueError")


@pytest.mark.parametrize("name", ["q", "q" * 128, "é" * 64, "a b", "'; drop", "%s", "😀", "\u200b"])
def test_names_of_every_script_are_names(name: str) -> None:
    assert limits.check_name(name, "queue") == name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "queue is empty"),
        ("q" * 129, "queue is 129 bytes: 'qqq"),
        ("é" * 65, "queue is 130 bytes"),
        (" q", "queue has a blank at its edge: ' q'"),
        ("q\u3000", "queue has a blank at its edge"),
        ("q\n", "queue has a blank at its edge: 'q\\n'"),
        ("a\0b", "queue has a control character: 'a\\x00b'"),
        ("a\x7fb", "queue has a control character"),
        ("a\x85b", "queue has a control character"),
        ("\ud800", "queue has a lone surrogate: '\\ud800'"),
        (None, "queue is not a str: None"),
        (b"q", "queue is not a str: a bytes"),
        (7, "queue is not a str: 7"),
    ],
)
def test_what_is_no_name_is_refused_and_shown(name: Any, message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        limits.check_name(name, "queue")
    assert str(refused.value).startswith(message)
    assert refused.value.hint


def test_a_worker_id_may_be_twice_as_long() -> None:
    assert limits.check_worker_id("w" * 256)
    with pytest.raises(InvalidArgument, match="worker_id is 257 bytes"):
        limits.check_worker_id("w" * 257)


def test_queues_keep_their_order_and_lose_repeats() -> None:
    assert limits.check_queues(("b", "a", "b")) == ["b", "a"]


@pytest.mark.parametrize("queues", ["mail", [], [f"q{i}" for i in range(1001)], ["ok", ""]])
def test_queues_that_are_no_list_of_1_to_1000_names_are_refused(queues: Any) -> None:
    with pytest.raises(InvalidArgument, match="queues"):
        limits.check_queues(queues)


def test_a_dedup_key_is_hashed_when_it_is_long() -> None:
    assert limits.stored_dedup_key("k" * 512) == "k" * 512
    stored = limits.stored_dedup_key("é" * 257)
    assert stored is not None
    assert stored.startswith("sha256:")
    assert len(stored) == len("sha256:") + 64
    assert limits.stored_dedup_key(None) is None


@pytest.mark.parametrize("key", ["", "a\0b", "k" * 8193, "\udc00", 7])
def test_a_dedup_key_that_cannot_be_stored_is_refused(key: Any) -> None:
    with pytest.raises(InvalidArgument, match="dedup_key"):
        limits.check_dedup_key(key)


SECOND = timedelta(seconds=1)
MS = timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("check", "least", "most"),
    [
        (limits.check_lease_for, 100 * MS, timedelta(hours=24)),
        (limits.check_delay, timedelta(0), timedelta(days=3653)),
        (limits.check_timeout, 100 * MS, timedelta(days=3653)),
    ],
)
def test_durations_have_bounds(
    check: Callable[[timedelta], object], least: timedelta, most: timedelta
) -> None:
    assert check(least) == least
    assert check(most) == most
    for value in (least - MS, most + MS, timedelta.max, timedelta.min):
        with pytest.raises(InvalidArgument, match="is out of range"):
            check(value)


@pytest.mark.parametrize("value", [30, 1.5, "30 s", True])
def test_a_duration_without_a_unit_is_refused(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="lease_for is not a timedelta"):
        limits.check_lease_for(value)


def test_a_count_is_an_int_in_range() -> None:
    assert limits.check_int(1000, "limit", 1, 1000) == 1000
    wrong: list[Any] = [0, 1001, True, 1.0, "1", None, 10**10_000]
    for value in wrong:
        with pytest.raises(InvalidArgument, match="limit is"):
            limits.check_int(value, "limit", 1, 1000)


def test_a_moment_needs_a_time_zone_and_becomes_utc() -> None:
    tokyo = timezone(timedelta(hours=9))
    moment = limits.check_instant(datetime(2026, 1, 1, 12, tzinfo=tokyo), "run_at")
    assert moment == datetime(2026, 1, 1, 3, tzinfo=UTC)
    assert moment.utcoffset() == timedelta(0)
    naive = datetime(2026, 1, 1, 12)  # noqa: DTZ001
    with pytest.raises(InvalidArgument, match="run_at has no time zone: 2026-01-01T12:00:00"):
        limits.check_instant(naive, "run_at")
    with pytest.raises(InvalidArgument, match="run_at is out of range"):
        limits.check_instant(datetime.min.replace(tzinfo=tokyo), "run_at")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queue": ""}, "queue is empty"),
        ({"kind": None}, "kind is not a str"),
        ({"payload": object()}, "payload: object is not JSON"),
        ({"payload": "x" * 1024 * 1024}, "payload is 1048578 bytes"),
        ({"meta": "x" * 16 * 1024}, "meta is 16386 bytes"),
        ({"priority": 10}, "priority is out of range: 10"),
        ({"priority": -1}, "priority is out of range: -1"),
        ({"max_attempts": 0}, "max_attempts is out of range: 0"),
        ({"max_attempts": 1001}, "max_attempts is out of range: 1001"),
        ({"delay": -SECOND}, "delay is out of range: -1 s"),
        ({"timeout": timedelta(0)}, "timeout is out of range: 0 s"),
        ({"retry_base": -SECOND}, "retry_base is out of range"),
        ({"retry_cap": timedelta(days=4000)}, "retry_cap is out of range"),
        ({"dedup_key": ""}, "dedup_key is empty"),
        (
            {"delay": SECOND, "run_at": datetime(2026, 1, 1, tzinfo=UTC)},
            "run_at and delay are given together",
        ),
    ],
)
def test_a_job_that_can_never_be_right_is_refused(options: dict[str, Any], message: str) -> None:
    job = NewJob(**{"kind": "work", **options})
    with pytest.raises(InvalidArgument) as refused:
        check_job(job)
    assert str(refused.value).startswith(message)
    with pytest.raises(InvalidArgument, match=r"jobs\[1\]"):
        check_jobs([NewJob(kind="work"), job])


@pytest.mark.parametrize("jobs", [[], [NewJob(kind="work")] * 10_001, ["work"]])
def test_a_batch_is_1_to_10000_jobs(jobs: Any) -> None:
    with pytest.raises(InvalidArgument, match="jobs"):
        check_jobs(jobs)


def test_none_is_stored_as_nothing() -> None:
    assert check_job(NewJob(kind="work")).payload is None
    assert check_job(NewJob(kind="work", payload=[None])).payload == "[null]"


def test_a_job_is_settled_once_in_a_call() -> None:
    twice = [Outcome(job_id=4, token=t, verb=Verb.COMPLETE) for t in (1, 2)]
    with pytest.raises(InvalidArgument, match="job 4 is in outcomes twice"):
        check_outcomes(twice)


def test_a_lost_lease_and_its_successor_are_renewed_in_one_call() -> None:
    assert check_leases([(4, 1), (5, 1), (4, 2), (5, 1)]) == ([4, 5, 4], [1, 1, 2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verb": "finish"}, r"outcomes\[0\].verb is not known: 'finish'"),
        ({"verb": Verb.FAIL}, r"outcomes\[0\].failure is missing"),
        (
            {"verb": Verb.COMPLETE, "failure": FAILURE},
            r"outcomes\[0\].failure is given to complete",
        ),
        ({"verb": Verb.RELEASE, "result": 1}, r"outcomes\[0\].result is given to release"),
        ({"verb": Verb.COMPLETE, "delay": SECOND}, r"outcomes\[0\].delay is given to complete"),
        ({"verb": Verb.RELEASE, "delay": -SECOND}, r"outcomes\[0\].delay is out of range"),
        ({"verb": Verb.COMPLETE, "result": {1}}, r"outcomes\[0\].result: set is not JSON"),
        ({"verb": Verb.COMPLETE, "job_id": 2**63}, r"outcomes\[0\].job_id is out of range"),
        ({"verb": Verb.COMPLETE, "token": "1"}, r"outcomes\[0\].token is not an int"),
    ],
)
def test_an_outcome_that_means_nothing_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        check_outcomes([Outcome(**{"job_id": 1, "token": 1, **options})])


def test_the_texts_of_a_failure_are_cut() -> None:
    failure = cut_failure(
        Failure(error_type="E" * 300, message="m\0" + "é" * 9000, traceback="t" * 40_000)
    )
    assert len(failure.error_type.encode()) == 256
    assert failure.message.startswith("m\ufffdé")
    assert len(failure.message.encode()) <= 8 * 1024
    assert failure.traceback is not None
    assert len(failure.traceback.encode()) == 32 * 1024


def test_an_argument_error_is_a_value_error() -> None:
    assert issubclass(InvalidArgument, ValueError)
