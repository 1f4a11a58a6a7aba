"""The calls of the contract as SQL, prepared or to be read by a person."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tenure.postgres_call import BY_SQLSTATE
from tenure.values import Failure, LapsedLease, Outcome
from tests.schedules import answers
from tests.schedules.rows import MICROSECOND
from tests.schedules.stage import Call

Given = list[tuple[str, str, Any]]
"""(parameter, type, value)."""


@dataclass(frozen=True, slots=True)
class Function:
    """How a function is called, and how its answer is read."""

    columns: str
    given: Callable[..., Given]
    read: answers.Read


def _array(values: Sequence[Any]) -> str:
    return "{" + ",".join("null" if v is None else json.dumps(str(v)) for v in values) + "}"


def _lease_args(job_id: int, worker_id: str, token: int) -> Given:
    return [
        ("job_id", "bigint", job_id),
        ("worker_id", "text", worker_id),
        ("token", "bigint", token),
    ]


def _worker(worker_id: str) -> Given:
    return [("worker_id", "text", worker_id)]


def _queue(queue: str) -> Given:
    return [("queue", "text", queue)]


def _job(job_id: int) -> Given:
    return [("job_id", "bigint", job_id)]


def _limit(limit: int = 100) -> Given:
    return [("limit", "int", limit)]


def _with_result(job_id: int, worker_id: str, token: int, result: int) -> Given:
    return [*_lease_args(job_id, worker_id, token), ("result", "jsonb", result)]


def _fail(
    job_id: int, worker_id: str, token: int, failure: Failure, *, delay: timedelta | None = None
) -> Given:
    return [
        *_lease_args(job_id, worker_id, token),
        ("error_type", "text", failure.error_type),
        ("message", "text", failure.message),
        ("retryable", "boolean", failure.retryable),
        ("delay", "interval", delay),
    ]


def _settle(worker_id: str, outcomes: list[Outcome]) -> Given:
    errors = [
        o.failure and json.dumps({"error_type": o.failure.error_type, "message": o.failure.message})
        for o in outcomes
    ]
    return [
        ("worker_id", "text", worker_id),
        ("job_ids", "bigint[]", _array([o.job_id for o in outcomes])),
        ("tokens", "bigint[]", _array([o.token for o in outcomes])),
        ("verbs", "text[]", _array([o.verb for o in outcomes])),
        ("results", "jsonb[]", _array([o.result for o in outcomes])),
        ("errors", "jsonb[]", _array(errors)),
        ("started", "boolean[]", _array([o.started for o in outcomes])),
    ]


def _renew(worker_id: str, leases: list[tuple[int, int]]) -> Given:
    return [
        ("worker_id", "text", worker_id),
        ("job_ids", "bigint[]", _array([job_id for job_id, _ in leases])),
        ("tokens", "bigint[]", _array([token for _, token in leases])),
    ]


def _update(
    job_id: int,
    worker_id: str,
    token: int,
    *,
    progress: int,
    lease_for: timedelta | None = None,
    require_cancel_not_requested: bool = True,
) -> Given:
    return [
        *_lease_args(job_id, worker_id, token),
        ("progress", "jsonb", progress),
        ("lease_for", "interval", lease_for),
        ("require_cancel_not_requested", "boolean", require_cancel_not_requested),
    ]


def _guard(
    job_id: int, worker_id: str, token: int, *, require_cancel_not_requested: bool = True
) -> Given:
    return [
        *_lease_args(job_id, worker_id, token),
        ("require_cancel_not_requested", "boolean", require_cancel_not_requested),
    ]


def _reclaim(pinned: LapsedLease, new_worker_id: str) -> Given:
    return [
        *_lease_args(pinned.job_id, pinned.worker_id, pinned.token),
        ("lease_expires_at", "timestamptz", pinned.lease_expires_at.isoformat()),
        ("new_worker_id", "text", new_worker_id),
    ]


def _claim(queues: list[str], worker_id: str, *, max_jobs: int, solo: bool = True) -> Given:
    return [
        ("queues", "text[]", _array(queues)),
        ("worker_id", "text", worker_id),
        ("max_jobs", "int", max_jobs),
        ("solo", "boolean", solo),
    ]


def _enqueue(
    queue: str,
    kind: str,
    *,
    max_attempts: int = 5,
    dedup_key: str | None = None,
    timeout: timedelta | None = None,
) -> Given:
    return [
        ("queue", "text", queue),
        ("kind", "text", kind),
        ("max_attempts", "int", max_attempts),
        ("dedup_key", "text", dedup_key),
        ("timeout", "interval", timeout),
    ]


FUNCTIONS: dict[str, Function] = {
    "enqueue": Function("job_id, created::int", _enqueue, answers.single(answers.enqueued)),
    "claim": Function(answers.LEASE, _claim, answers.many(answers.lease)),
    "claim_job": Function(
        answers.LEASE,
        lambda job_id, worker_id: [("job_id", "bigint", job_id), ("worker_id", "text", worker_id)],
        answers.optional(answers.lease),
    ),
    "next_eligible_job_id": Function(
        "next_eligible_job_id",
        lambda queues: [("queues", "text[]", _array(queues))],
        lambda rows: None if rows[0][0] is None else int(rows[0][0]),
    ),
    "renew": Function(answers.RENEWAL, _renew, answers.many(answers.renewal)),
    "lapsed": Function(answers.LAPSED, _limit, answers.many(answers.lapsed)),
    "held": Function(
        answers.HELD,
        _worker,
        answers.many(answers.held),
    ),
    "reclaim": Function(answers.LEASE, _reclaim, answers.optional(answers.lease)),
    "update_owned": Function(answers.VERDICT, _update, answers.single(answers.settled)),
    "guard": Function("guard", _guard, lambda rows: None),
    "seal": Function(answers.VERDICT, _with_result, answers.single(answers.settled)),
    "complete": Function(answers.VERDICT, _with_result, answers.single(answers.settled)),
    "fail": Function(answers.VERDICT, _fail, answers.single(answers.settled)),
    "release": Function(
        answers.VERDICT,
        lambda job_id, worker_id, token, *, started: [
            *_lease_args(job_id, worker_id, token),
            ("started", "boolean", started),
        ],
        answers.single(answers.settled),
    ),
    "acknowledge_cancel": Function(answers.VERDICT, _lease_args, answers.single(answers.settled)),
    "settle": Function(answers.VERDICT, _settle, answers.many(answers.settled)),
    "sweep": Function(
        answers.SWEPT,
        _worker,
        answers.many(answers.swept),
    ),
    "cancel": Function(answers.JOB, _job, answers.single(answers.job)),
    "cancel_requested": Function(
        "cancel_requested::int",
        _job,
        lambda rows: rows[0][0] == "1",
    ),
    "retry": Function(
        answers.JOB,
        lambda job_id, attempts=1: [("job_id", "bigint", job_id), ("attempts", "int", attempts)],
        answers.single(answers.job),
    ),
    "pause": Function(answers.QUEUE, _queue, answers.single(answers.queue)),
    "resume": Function(answers.QUEUE, _queue, answers.single(answers.queue)),
}


def given(call: Call) -> Given:
    return FUNCTIONS[call.verb].given(*call.arguments, **call.options)


def prepared(call: Call) -> str:
    """The statement of a verb with $1, $2, … ; the same for every call of the verb."""
    places = ", ".join(
        f"p_{name} => ${n}::{kind}" for n, (name, kind, _) in enumerate(given(call), 1)
    )
    return f"select {FUNCTIONS[call.verb].columns} from tenure.{call.verb}({places})"


def values(call: Call) -> list[bytes | None]:
    return [None if v is None else _text(v).encode() for _, _, v in given(call)]


def spelled(call: Call, queue: str, actor: str, now: str) -> str:
    """What a person would type into psql."""
    if call.verb == "advance":
        return f"update tenure.test_clock set at = '{now}';"
    if call.verb == "write":
        return f"insert into application values ('{queue}', '{actor}');"
    if call.verb in ("begin", "commit", "rollback"):
        return f"{call.verb};"
    places = ", ".join(
        f"p_{name} => {_text(value)}"
        if isinstance(value, int) and not isinstance(value, bool) and kind != "jsonb"
        else f"p_{name} => '{_text(value)}'"
        for name, kind, value in given(call)
        if value is not None
    )
    return f"select * from tenure.{call.verb}({places});"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return f"{value // MICROSECOND} microseconds"
    return str(value)


def error_of(sqlstate: str) -> type[Exception] | None:
    return BY_SQLSTATE.get(sqlstate)
