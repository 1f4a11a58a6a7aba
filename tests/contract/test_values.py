"""What goes in as JSON or as error text, and what comes out."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.control_plane import ControlPlane
from tenure.records import JobRecord, Records
from tenure.values import Failure, JobStatus, Outcome, Verb, Verdict
from tests.contract.backends import Clock
from tests.contract.scenario import Scene

TEN_YEARS = timedelta(days=3653)


@pytest.fixture
def scene(control_plane: ControlPlane, clock: Clock) -> Scene:
    return Scene(control_plane, clock)


def record(records: Records, job_id: int) -> JobRecord:
    job = records.job(job_id)
    assert job is not None
    return job


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def exactly(value: Any) -> str:
    """A text that tells 1 from 1.0 and True, which are equal in Python."""
    return json.dumps(value, sort_keys=True)


KEPT = {
    "nothing": None,
    "false": False,
    "zero": 0,
    "empty text": "",
    "the word null": "null",
    "empty list": [],
    "empty object": {},
    "nothing inside": {"a": None, "b": [None]},
    "text": "Grüße, 世界 \U0001f44b \u2028 \u2029 \x7f \t\r\n\"\\/ ' % :name $1 \ufeff \ufffd",
    "keys": {"": 1, "a.b": 2, "é": 3, "$": 4, "0": 5, " ": 6},
    "largest int": 2**63 - 1,
    "smallest int": -(2**63 - 1),
    "int beyond a double": 2**53 + 1,
    "float": 0.1,
    "whole float": 1.0,
    "large float": 9_007_199_254_740_993.0,
    "small float": 5e-324,
    "exponent": 1.5e-7,
    "deepest": nested(64),
    "wide": list(range(1000)),
}


@pytest.mark.parametrize("name", KEPT)
def test_json_comes_back_as_it_went_in(scene: Scene, records: Records, name: str) -> None:
    value = KEPT[name]
    lease = scene.lease(payload=value, meta=value)
    scene.control_plane.update_owned(lease.job_id, "ada", lease.token, progress=value)
    live = record(records, lease.job_id)
    scene.control_plane.complete(lease.job_id, "ada", lease.token, value)
    ended = record(records, lease.job_id)

    found = [
        lease.payload,
        lease.meta,
        *(x for job in (live, ended) for x in (job.payload, job.meta, job.progress)),
        ended.result,
    ]
    assert {exactly(x) for x in found} == {exactly(value)}


BENT = {
    "tuple": ((1, (2,)), [1, [2]]),
    "int key": ({1: "a", -2: "b"}, {"1": "a", "-2": "b"}),
    "negative zero": ([-0.0], [0.0]),
}


@pytest.mark.parametrize("name", BENT)
def test_json_comes_back_changed_only_where_that_is_documented(
    scene: Scene, records: Records, name: str
) -> None:
    """What Python has and JSON has not."""
    given_, kept = BENT[name]
    lease = scene.lease(payload=given_)
    scene.control_plane.complete(lease.job_id, "ada", lease.token, given_)

    assert exactly(lease.payload) == exactly(kept)
    assert exactly(record(records, lease.job_id).result) == exactly(kept)


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**63 - 1), max_value=2**63 - 1)
    | st.floats(min_value=-1e16, max_value=1e16, exclude_min=True, exclude_max=True).map(
        lambda number: number + 0.0
    )
    | text
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(value=values)
def test_any_json_comes_back_as_it_went_in(
    control_plane: ControlPlane, records: Records, value: Any
) -> None:
    job_id = control_plane.enqueue("mail", "send", value).job_id

    assert exactly(record(records, job_id).payload) == exactly(value)


def test_values_as_large_as_allowed_are_kept(scene: Scene, records: Records) -> None:
    """1 MiB of compact JSON for payload and result, 16 KiB for progress and meta."""
    large, small = "é" * (512 * 1024 - 1), "é" * (8 * 1024 - 1)
    assert len(json.dumps(large, ensure_ascii=False).encode()) == 1024 * 1024
    lease = scene.lease(payload=large, meta=small)
    plane, shown = scene.control_plane, (lease.job_id, "ada", lease.token)

    assert plane.update_owned(*shown, progress=small).verdict is Verdict.OK
    assert plane.seal(*shown, large).verdict is Verdict.OK
    assert plane.complete(*shown).verdict is Verdict.OK
    job = record(records, lease.job_id)
    assert lease.payload == job.payload == job.result == large
    assert lease.meta == job.meta == job.progress == small


@pytest.mark.parametrize(
    "name",
    ["Grüße", "世界", "\U0001f44b", "a \"b\" 'c'", "50 %", "a:b %s $1", "a\\b;--", "x" * 128],
)
def test_names_may_hold_any_printable_text(scene: Scene, records: Records, name: str) -> None:
    plane = scene.control_plane
    job_id = plane.enqueue(name, name, dedup_key=name).job_id
    assert plane.next_eligible_job_id([name]) == job_id

    [lease] = plane.claim([name], name)
    [held] = plane.held(name)
    plane.pause(name)

    assert (lease.queue, lease.kind, lease.worker_id) == (name, name, name)
    assert held.job_id == job_id
    assert plane.complete(job_id, name, lease.token).verdict is Verdict.OK
    job = record(records, job_id)
    assert (job.queue, job.kind, job.worker_id, job.dedup_key) == (name, name, name, name)
    assert [queue.queue for queue in records.queues()] == [name]


@pytest.mark.parametrize("way", ["itself", "settle"])
def test_an_error_text_is_cut_to_its_size_between_characters_and_marked(
    scene: Scene, records: Records, way: str
) -> None:
    """Neither a long message nor an odd one keeps a job running."""
    failure = Failure(
        error_type="É" * 300, message="é" * 3_000_000, traceback="世" * 100_000, retryable=True
    )
    lease = scene.lease()
    if way == "itself":
        settled = scene.control_plane.fail(lease.job_id, "ada", lease.token, failure)
    else:
        outcome = Outcome(job_id=lease.job_id, token=1, verb=Verb.FAIL, failure=failure)
        [settled] = scene.control_plane.settle("ada", [outcome])

    assert (settled.verdict, settled.status) == (Verdict.OK, JobStatus.QUEUED)
    [row] = records.attempts(lease.job_id)
    last_error = record(records, lease.job_id).last_error
    for stored, letter, most in (
        (row.error_type, "É", 256),
        (row.message, "é", 8 * 1024),
        (row.traceback, "世", 32 * 1024),
    ):
        assert stored is not None
        assert set(stored) == {letter, "…"}
        assert stored.endswith("…")
        assert most - 8 < len(stored.encode()) <= most
    assert last_error is not None
    assert last_error.startswith("É" * 100)
    assert last_error.endswith("…")
    assert len(last_error.encode()) <= 8 * 1024


def test_a_short_error_text_is_kept_whole(scene: Scene, records: Records) -> None:
    failure = Failure(error_type="e" * 256, message="m" * 8 * 1024, traceback="t" * 32 * 1024)
    lease = scene.lease()
    scene.fail(lease, failure)

    [row] = records.attempts(lease.job_id)
    assert (row.error_type, row.message, row.traceback) == (
        failure.error_type,
        failure.message,
        failure.traceback,
    )


@pytest.mark.parametrize("way", ["itself", "settle"])
def test_what_cannot_be_stored_in_an_error_text_is_replaced(
    scene: Scene, records: Records, way: str
) -> None:
    """An error about a NUL must not become an error of its own."""
    failure = Failure(error_type="a\0b", message="c\ud800d", traceback="\0\udfff")
    lease = scene.lease()
    if way == "itself":
        scene.fail(lease, failure)
    else:
        outcome = Outcome(job_id=lease.job_id, token=1, verb=Verb.FAIL, failure=failure)
        scene.control_plane.settle("ada", [outcome])

    [row] = records.attempts(lease.job_id)
    assert (row.error_type, row.message, row.traceback) == (
        "a\ufffdb",
        "c\ufffdd",
        "\ufffd\ufffd",
    )
    assert record(records, lease.job_id).last_error == "a\ufffdb: c\ufffdd"


def test_an_error_without_a_message_is_its_type(scene: Scene, records: Records) -> None:
    lease = scene.lease()
    scene.fail(lease, Failure(error_type="TimeoutError"))

    [row] = records.attempts(lease.job_id)
    assert (row.error_type, row.message, row.traceback) == ("TimeoutError", "", None)
    last_error = record(records, lease.job_id).last_error
    assert last_error is not None
    assert last_error.rstrip(": ") == "TimeoutError"


def test_the_largest_arguments_are_accepted(control_plane: ControlPlane) -> None:
    plane = control_plane
    added = plane.enqueue(
        "q" * 128,
        "é" * 64,
        priority=9,
        delay=TEN_YEARS,
        max_attempts=1000,
        timeout=TEN_YEARS,
        retry_base=TEN_YEARS,
        retry_cap=TEN_YEARS,
        dedup_key="x" * 8 * 1024,
    )
    assert added.created
    assert plane.claim(["q" * 128], "w" * 256, max_jobs=1000, lease_for=timedelta(days=1)) == []
    assert plane.sweep("w", 10_000) == []
    assert plane.lapsed(10_000) == []
    plane.cancel(added.job_id)
    assert plane.retry(added.job_id, 1000).verdict is Verdict.OK


def test_the_smallest_arguments_are_accepted(control_plane: ControlPlane) -> None:
    plane = control_plane
    zero, shortest = timedelta(0), timedelta(milliseconds=100)
    added = plane.enqueue(
        "q",
        "k",
        priority=0,
        delay=zero,
        max_attempts=1,
        timeout=shortest,
        retry_base=zero,
        retry_cap=zero,
        dedup_key="x",
    )
    [lease] = plane.claim(["q"], "w", max_jobs=1, lease_for=shortest)
    assert lease.job_id == added.job_id
    assert (
        plane.release(lease.job_id, "w", lease.token, started=False, delay=zero).verdict
        is Verdict.OK
    )
