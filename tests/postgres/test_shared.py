"""enqueue_many's third argument: what the elements of a batch have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.postgres.races import Connection, call

Session = Callable[[], Connection]

SHARED = {
    "queue": "q",
    "kind": "work",
    "payload": {"of": "all"},
    "priority": 7,
    "delay": "1 hour",
    "max_attempts": 9,
    "timeout": "7 seconds",
    "retry_base": "2 seconds",
    "retry_cap": "3 seconds",
    "meta": {"trace": 1},
}
COLUMNS = "queue, kind, payload, priority, max_attempts, timeout::text, meta, dedup_key"


def made(connection: Connection, jobs: list[Any], shared: Any) -> list[tuple[Any, ...]]:
    """The rows of the jobs, in their order."""
    answers = call(connection, "enqueue_many", Jsonb(jobs), shared=Jsonb(shared))
    assert [answer.ordinal for answer in answers] == list(range(1, len(jobs) + 1))
    ids = [answer.job_id for answer in answers]
    assert ids == sorted(ids)
    rows = connection.execute(
        f"select {COLUMNS} from tenure.job where id = any (%s) order by id",
        [ids],
    ).fetchall()
    return [tuple(row) for row in rows]


def test_an_element_has_what_is_shared_unless_it_names_it(session: Session) -> None:
    connection = session()
    all_of_it = ("q", "work", {"of": "all"}, 7, 9, "00:00:07", {"trace": 1}, None)

    assert made(
        connection,
        [
            {},
            {"queue": "r", "kind": "rest", "payload": 1, "meta": 2},
            {"priority": 0, "max_attempts": 1, "timeout": "1 minute"},
            {"payload": None, "priority": None, "max_attempts": None, "timeout": None},
        ],
        SHARED,
    ) == [
        all_of_it,
        ("r", "rest", 1, 7, 9, "00:00:07", 2, None),
        ("q", "work", {"of": "all"}, 0, 1, "00:01:00", {"trace": 1}, None),
        ("q", "work", None, 5, 5, None, {"trace": 1}, None),
    ]
    spans = connection.execute(
        "select retry_base::text, retry_cap::text, next_attempt_at - created_at from tenure.job"
    ).fetchall()
    assert {(base, cap, delay.total_seconds()) for base, cap, delay in spans} == {
        ("00:00:02", "00:00:03", 3600.0)
    }


def test_jobs_with_keys_share_too(session: Session) -> None:
    keyed = [{"dedup_key": "b"}, {}, {"dedup_key": "a", "priority": 1}]

    rows = made(session(), keyed, {"queue": "q", "kind": "work", "priority": 3})

    assert [(row[3], row[7]) for row in rows] == [(3, "b"), (3, None), (1, "a")]


def test_a_shared_key_makes_one_job(session: Session) -> None:
    shared = Jsonb({"queue": "q", "kind": "work", "dedup_key": "k"})

    answers = call(session(), "enqueue_many", Jsonb([{}, {}]), shared=shared)

    assert [answer.created for answer in answers] == [True, False]
    assert len({answer.job_id for answer in answers}) == 1


@pytest.mark.parametrize(
    ("elements", "shared", "message"),
    [
        ([{}], [], "shared is not a JSON object"),
        ([{}], None, r"jobs\[0\]: queue is null"),
        ([{"priority": 1}, {}], {"priority": 10}, r"jobs\[1\]: priority is 10"),
        ([{}], {"timeout": "soon"}, "jobs: invalid input syntax for type interval"),
        ([{}, {"run_at": "2026-01-01"}], {"delay": "1 s"}, r"jobs\[1\]: run_at and delay"),
        ([{"queue": "q"}, {}], {"queue": " "}, r"jobs\[1\]: queue ' ' is not a name"),
        ([1], {}, "jobs: "),
    ],
)
def test_what_is_shared_is_checked_as_if_each_element_had_it(
    session: Session, elements: list[Any], shared: Any, message: str
) -> None:
    connection = session()
    if isinstance(shared, dict):
        shared = {"queue": "q", "kind": "work"} | shared
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=message) as refused:
        call(
            connection,
            "enqueue_many",
            Jsonb(elements),
            shared=None if shared is None else Jsonb(shared),
        )
    assert refused.value.diag.message_hint
    assert connection.execute("select count(*) from tenure.job").fetchone() == (0,)
