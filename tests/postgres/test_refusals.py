"""What the server refuses by itself: the Python client refuses most of it before it is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.postgres.races import Connection, call, enqueued, leased, one

Session = Callable[[], Connection]

LEASED_VERBS: dict[str, list[Any]] = {
    "complete": [],
    "fail": ["E"],
    "release": [True],
    "acknowledge_cancel": [],
    "seal": [],
    "update_owned": [],
    "guard": [],
    "reclaim": ["2026-01-01", "bob"],
}


@pytest.mark.parametrize("missing", range(3))
@pytest.mark.parametrize("verb", LEASED_VERBS)
def test_a_lease_is_named_by_all_three_or_not_at_all(
    session: Session, verb: str, missing: int
) -> None:
    shown: list[Any] = [1, "ada", 1]
    shown[missing] = None
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="one of them is null"):
        call(session(), verb, *shown, *LEASED_VERBS[verb])


REFUSED: list[tuple[str, list[Any], str]] = [
    ("acknowledge_cancel", [None, "ada", 1], "one of them is null"),
    ("cancel", [None], "job_id is null"),
    ("cancel_requested", [None], "job_id is null"),
    ("claim", [None, "ada"], "the number of queues is null"),
    ("claim", [[], "ada"], "the number of queues is 0"),
    ("claim", [["q", None], "ada"], "a queue is null"),
    ("claim", [["q"], None], "worker_id is null"),
    ("claim", [["q"], "ada", None], "max_jobs is null"),
    ("claim", [["q"], "ada", 0], "max_jobs is 0"),
    ("claim", [["q"], "ada", 1001], "max_jobs is 1001"),
    ("claim", [["q"], "ada", 1, None], "lease_for is null"),
    ("claim_job", [None, "ada"], "job_id is null"),
    ("claim_job", [1, "ada", "99 milliseconds"], "lease_for is 00:00:00.099"),
    ("claim_job", [1, "ada", "12 months -359 days"], "lease_for is 1 year -359 days"),
    ("claim_job", [1, "ada", "1 day -59 minutes"], "lease_for is 1 day -00:59:00"),
    ("claim_job", [1, "ada", "1 day -1 hour"], "lease_for is 1 day -01:00:00"),
    ("claim_job", [1, "ada", "1 day -1 second"], "lease_for is 1 day -00:00:01"),
    ("claim_job", [1, "ada", "-1 month 30 days 1 hour"], "lease_for is -1 mons +30 days 01:00:00"),
    ("claim_job", [1, "ada", "-1 day 30 hours"], "lease_for is -1 days +30:00:00"),
    ("claim_job", [1, "ada", "-12 months 361 days"], "lease_for is -1 years +361 days"),
    ("claim_job", [1, " ada"], "worker_id ' ada' is not a name"),
    ("claim_job", [1, "ada "], "worker_id 'ada ' is not a name"),
    ("claim_job", [1, "a\tda"], "is not a name"),
    ("claim_job", [1, ""], "worker_id '' is not a name"),
    ("claim_job", [1, "a" * 257], "worker_id is 257 bytes long"),
    ("enqueue_many", [None], "jobs is not a JSON array"),
    ("enqueue_many", [Jsonb({})], "jobs is not a JSON array"),
    ("enqueue_many", [Jsonb([])], "the number of jobs is 0"),
    ("fail", [1, "ada", 1, "E", "", None, True, "-1 second"], "delay is -00:00:01"),
    ("guard", [1, "ada", 1, True, None], "lease_for is null"),
    ("held", [None], "worker_id is null"),
    ("lapsed", [0], "limit is 0"),
    ("lapsed", [None], "limit is null"),
    ("next_due", [[]], "the number of queues is 0"),
    ("next_eligible_job_id", [[]], "the number of queues is 0"),
    ("pause", [None], "queue is null"),
    ("reclaim", [1, "ada", 1, None, "bob"], "lease_expires_at is null"),
    ("reclaim", [1, "ada", 1, "2026-01-01", None], "new_worker_id is null"),
    ("release", [1, "ada", 1, None], "started is null"),
    ("renew", ["ada", [], []], "the number of leases is 0"),
    ("renew", ["ada", [1], [1, 2]], "1 job_ids and 2 tokens are given"),
    ("renew", ["ada", [1], None], "1 job_ids and no tokens are given"),
    ("renew", ["ada", [[1], [2]], [1, 2]], "is an array of arrays"),
    ("renew", ["ada", [1, 2], [[1, 2]]], "is an array of arrays"),
    ("settle", ["ada", [[1]], [1], ["complete"]], "is an array of arrays"),
    ("renew", ["ada", [None], [1]], "a job_id or token is null"),
    ("renew", ["ada", [1], [None]], "a job_id or token is null"),
    ("resume", ["q "], "queue 'q ' is not a name"),
    ("retry", [1, 0], "attempts is 0"),
    ("settle", [None, [1], [1], ["complete"]], "worker_id is null"),
    ("settle", ["ada", [1], [1], ["retry"]], "verb is retry"),
    ("settle", ["ada", [1], [1], [None]], "verb is null"),
    ("settle", ["ada", [1], [1], None], "an array of another length"),
    ("settle", ["ada", [1], [1], ["fail", "fail"]], "an array of another length"),
    ("settle", ["ada", [1, 1], [1, 2], ["fail", "fail"]], "job 1 is given twice"),
    ("sleep_begin", [[]], "the number of queues is 0"),
    ("sleep_settled", [None], "horizon is null"),
    ("sweep", ["ada", 0], "limit is 0"),
    ("sweep", ["ada", 10001], "limit is 10001"),
    ("try_wake", [None], "the number of queues is null"),
    ("try_wake", [["q "]], "queue 'q ' is not a name"),
    ("update_owned", [1, "ada", 1, None, "99 milliseconds"], "lease_for is 00:00:00.099"),
    ("wake", [None], "the number of queues is null"),
    ("worker_seen", [None, ["q"]], "worker_id is null"),
    ("worker_seen", ["ada", ["q "]], "queue 'q ' is not a name"),
]


@pytest.mark.parametrize(("function", "arguments", "message"), REFUSED)
def test_an_argument_that_can_never_be_right_is_refused_with_a_hint(
    session: Session, function: str, arguments: list[Any], message: str
) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        call(session(), function, *arguments)
    assert message in str(refused.value)
    assert refused.value.diag.message_hint


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"results": [None, None]}, "an array of another length"),
        ({"errors": [None, None]}, "an array of another length"),
        ({"delays": [None, None]}, "an array of another length"),
        ({"started": [None, None]}, "an array of another length"),
        ({"delays": ["-1 second"]}, "delay is -00:00:01"),
        ({"errors": [Jsonb("boom")]}, 'error "boom" is not an error object'),
        ({"errors": [Jsonb({"retryable": "no"})]}, "is not an error object"),
        ({"errors": [Jsonb({"cancel": "yes"})]}, "is not an error object"),
        ({"results": [Jsonb("x" * 1_048_576)]}, "result is 1048578 bytes long"),
    ],
)
def test_a_batch_is_refused_whole(session: Session, named: dict[str, Any], message: str) -> None:
    connection = session()
    lease = leased(connection)
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        call(connection, "settle", "ada", [lease.job_id], [lease.token], ["complete"], **named)
    assert message in str(refused.value)
    assert len(call(connection, "held", "ada")) == 1


def test_what_is_null_in_a_batch_stands_for_the_default(session: Session) -> None:
    connection = session()
    lease = leased(connection)
    [settled] = call(
        connection, "settle", "ada", [lease.job_id], [lease.token], ["release"],
        results=[None], errors=[None], delays=[None], started=[None],
    )  # fmt: skip
    assert (settled.verdict, settled.status) == ("ok", "queued")
    assert one(connection, "claim_job", lease.job_id, "ada").attempt == 2


def test_an_error_beside_another_verb_means_nothing(session: Session) -> None:
    connection = session()
    lease = leased(connection)
    [settled] = call(
        connection, "settle", "ada", [lease.job_id], [lease.token], ["release"],
        errors=[Jsonb({"retryable": False, "cancel": True})],
    )  # fmt: skip
    assert (settled.verdict, settled.status) == ("ok", "queued")


def test_a_time_and_a_delay_contradict_each_other(session: Session) -> None:
    connection = session()
    for bad, message in (
        ({"run_at": "2026-01-01", "delay": "1 s"}, "run_at and delay are both given"),
        ({"run_at": "2099-01-01"}, "run_at is"),
        ({"priority": None}, "priority is null"),
        ({"max_attempts": None}, "max_attempts is null"),
    ):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=message):
            enqueued(connection, **bad)
    assert one(connection, "next_eligible_job_id", ["q"]).next_eligible_job_id is None


def test_json_of_64_levels_passes_and_of_65_is_refused(session: Session) -> None:
    connection = session()
    enqueued(connection, payload=Jsonb(deep(64)), meta=Jsonb(deep(64)))
    for part in ("payload", "meta"):
        wrong: dict[str, Any] = {part: Jsonb(deep(65))}
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="nested too deeply"):
            enqueued(connection, **wrong)
        jobs = [element(**{part: "x" * 600}), element(**{part: deep(65)})]
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=r"jobs\[1\]: "):
            call(connection, "enqueue_many", Jsonb(jobs))


@pytest.mark.parametrize(
    "wrong",
    [
        {"payload": "x" * 1_048_576},
        {"meta": "x" * 16_384},
        {"dedup_key": "k" * 8193},
        {"dedup_key": ""},
        {"priority": 10},
        {"kind": None},
        {"kind": ""},
        {"kind": "k" * 129},
        {"queue": "q" * 129},
        {"delay": "-1 s"},
        {"timeout": "1 ms"},
        {"retry_base": "-1 s"},
        {"retry_cap": "-1 s"},
        {"max_attempts": 0},
        {"run_at": "2099-01-01"},
        {"run_at": "2026-01-01", "delay": "1 s"},
    ],
    ids=lambda wrong: " and ".join(f"{name} {str(value)[:9]}" for name, value in wrong.items()),
)
def test_one_wrong_element_voids_all_and_is_named(session: Session, wrong: dict[str, Any]) -> None:
    connection = session()
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=r"jobs\[1\]: "):
        call(connection, "enqueue_many", Jsonb([element(), element(**wrong), element()]))
    assert one(connection, "next_eligible_job_id", ["q"]).next_eligible_job_id is None


def element(**changes: Any) -> dict[str, Any]:
    return {"queue": "q", "kind": "work", **changes}


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value
