"""A batch as it is sent: every job with exactly what it was given, whatever the others have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, overload

import pytest

from tenure.bulk import batch
from tenure.codec import JsonText
from tenure.errors import InvalidArgument
from tenure.values import NewJob


def sent(jobs: Sequence[NewJob]) -> list[dict[str, Any]]:
    """What each job comes to, with what it shares and without what it has not."""
    elements, shared = batch(jobs)
    merged = [json.loads(shared) | element for element in json.loads(elements)]
    return [{n: value for n, value in job.items() if value is not None} for job in merged]


def test_what_all_share_is_sent_once() -> None:
    elements, shared = batch(
        [NewJob(kind="send", queue="mail", payload=n, meta={"trace": "é"}) for n in range(3)]
    )

    assert json.loads(elements) == [{"payload": 0}, {"payload": 1}, {"payload": 2}]
    assert json.loads(shared) == {
        "queue": "mail",
        "kind": "send",
        "priority": 5,
        "max_attempts": 5,
        "meta": {"trace": "é"},
    }


def test_each_job_has_its_own_arguments_whatever_the_first_has() -> None:
    noon = datetime(2100, 1, 1, 12, tzinfo=UTC)
    second = timedelta(seconds=1)
    usual = {"queue": "default", "kind": "a", "priority": 5, "max_attempts": 5}

    assert sent(
        [
            NewJob(kind="a", delay=second, timeout=second, meta=[1], dedup_key="k"),
            NewJob(kind="a"),
            NewJob(kind="b", queue="mail", priority=0, max_attempts=1, run_at=noon, payload={}),
            NewJob(kind="a", retry_base=second, retry_cap=2 * second, meta=[2], dedup_key="l"),
            NewJob(kind="a", delay=second, timeout=second, meta=[1], payload=[None]),
        ]
    ) == [
        usual
        | {"delay": "1.000000 seconds", "timeout": "1.000000 seconds", "meta": [1]}
        | {"dedup_key": "k"},
        usual,
        {"queue": "mail", "kind": "b", "priority": 0, "max_attempts": 1, "payload": {}}
        | {"run_at": "2100-01-01T12:00:00+00:00"},
        usual
        | {"retry_base": "1.000000 seconds", "retry_cap": "2.000000 seconds", "meta": [2]}
        | {"dedup_key": "l"},
        usual
        | {"delay": "1.000000 seconds", "timeout": "1.000000 seconds", "meta": [1]}
        | {"payload": [None]},
    ]


def test_an_argument_that_only_equals_one_that_is_right_is_refused() -> None:
    right = NewJob(kind="k", priority=1)
    wrong: Any

    for wrong in (True, 1.0):
        with pytest.raises(InvalidArgument, match=r"^jobs\[1\]\.priority is not an int: "):
            batch([right, right._replace(priority=wrong)])


def test_payloads_are_sent_as_one_alone_is() -> None:
    shared = ["x"]
    payloads: list[Any] = [
        -0.0,
        {"a": [-0.0, 0.0, 1.5]},
        (1, (2,)),
        {1: "int key"},
        JsonText('{"a": "written already"}'),
        "é\u2028",
        [shared] * 60,
        None,
    ]

    assert [
        job.get("payload") for job in sent([NewJob(kind="k", payload=p) for p in payloads])
    ] == [
        0.0,
        {"a": [0.0, 0.0, 1.5]},
        [1, [2]],
        {"1": "int key"},
        {"a": "written already"},
        "é\u2028",
        [["x"]] * 60,
        None,
    ]
    elements, _ = batch([NewJob(kind="k", payload=p) for p in payloads])
    assert "-0" not in elements


@pytest.mark.parametrize("place", [0, 49, 50, 120])
def test_a_payload_that_is_too_large_is_named_wherever_it_is(place: int) -> None:
    largest = "é" * (512 * 1024 - 1)
    jobs = [NewJob(kind="k", payload=n) for n in range(121)]
    jobs[60] = NewJob(kind="k", payload=largest)
    batch(jobs)

    jobs[place] = NewJob(kind="k", payload=largest + "e")
    with pytest.raises(InvalidArgument, match=rf"^jobs\[{place}\]\.payload is 1048577 bytes"):
        batch(jobs)


def test_of_several_faults_the_first_job_s_is_told() -> None:
    fine = NewJob(kind="k")

    with pytest.raises(InvalidArgument, match=r"^jobs\[1\]\.payload: a str with a NUL"):
        batch([fine, NewJob(kind="k", payload="\0"), NewJob(kind=""), NewJob(kind="k", delay=5)])  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"^jobs\[1\] is not a NewJob: 'k'"):
        batch([fine, "k", NewJob(kind="")])  # type: ignore[list-item]
    with pytest.raises(InvalidArgument, match=r"^jobs\[2\]\.dedup_key is empty"):
        batch([fine, fine, NewJob(kind="k", dedup_key="")])


class MadeOnTheWay(Sequence[NewJob]):
    """Keeps no job, so that one may come to lie where another was."""

    def __len__(self) -> int:
        return 1_000

    @overload
    def __getitem__(self, index: int) -> NewJob: ...
    @overload
    def __getitem__(self, index: slice) -> list[NewJob]: ...
    def __getitem__(self, index: int | slice) -> NewJob | list[NewJob]:
        if isinstance(index, slice):
            return list(self)[index]
        return NewJob(kind=f"kind {index}", meta=[index])

    def __iter__(self) -> Iterator[NewJob]:
        return (self[n] for n in range(len(self)))


def test_jobs_that_are_made_while_they_are_read_keep_their_arguments() -> None:
    assert [(job["kind"], job["meta"]) for job in sent(MadeOnTheWay())] == [
        (f"kind {n}", [n]) for n in range(1_000)
    ]
