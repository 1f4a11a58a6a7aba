"""The calls of the contract as SQL, prepared or to be read by a person."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tenure.postgres_call import BY_SQLSTATE
from tenure.values import (
    Enqueued,
    Failure,
    HeldLease,
    JobAnswer,
    JobLease,
    JobStatus,
    LapsedLease,
    LeaseRenewal,
    Outcome,
    QueueAnswer,
    Renewal,
    Settled,
    Swept,
    Verdict,
)
from tests.schedules.rows import MICROSECOND, moment
from tests.schedules.stage import Call

Fields = Sequence[str | None]
Given = list[tuple[str, str, Any]]
"""(parameter, type, value)."""


def _time(name: str) -> str:
    return f"(extract(epoch from {name}) * 1000000)::bigint"


VERDICT = f"job_id, token, verdict, status, {_time('next_attempt_at')}"
LEASE = (
    f"job_id, token, worker_id, {_time('lease_expires_at')}, queue, kind, payload, priority, "
    f"attempt, max_attempts, {_time('timeout')}, buffered::int, solo::int, progress, meta, "
    f"{_time('created_at')}, last_error"
)
SWEPT = f"job_id, token, outcome, status, {_time('next_attempt_at')}"
RENEWAL = f"job_id, token, outcome, {_time('lease_expires_at')}, cancel_requested::int"
LAPSED = f"job_id, worker_id, token, {_time('lease_expires_at')}"
HELD = f"job_id, token, {_time('lease_expires_at')}"
JOB = "job_id, verdict, status"
QUEUE = f"queue, verdict, {_time('paused_at')}"


def _int(text: str | None) -> int:
    assert text is not None
    return int(text)


def _status(text: str | None) -> JobStatus | None:
    return None if text is None else JobStatus(text)


def _settled(f: Fields) -> Settled:
    return Settled(
        job_id=_int(f[0]),
        token=_int(f[1]),
        verdict=Verdict(str(f[2])),
        status=_status(f[3]),
        next_attempt_at=moment(f[4]),
    )


def _lease(f: Fields) -> JobLease:
    expires, created = moment(f[3]), moment(f[15])
    assert expires is not None
    assert created is not None
    return JobLease(
        job_id=_int(f[0]),
        token=_int(f[1]),
        worker_id=str(f[2]),
        lease_expires_at=expires,
        queue=str(f[4]),
        kind=str(f[5]),
        payload=f[6],
        priority=_int(f[7]),
        attempt=_int(f[8]),
        max_attempts=_int(f[9]),
        timeout=None if f[10] is None else int(f[10]) * MICROSECOND,
        buffered=f[11] == "1",
        solo=f[12] == "1",
        progress=None if f[13] is None else json.loads(f[13]),
        meta=f[14],
        created_at=created,
        last_error=f[16],
    )


def _swept(f: Fields) -> Swept:
    return Swept(
        job_id=_int(f[0]),
        token=_int(f[1]),
        outcome=str(f[2]),
        status=JobStatus(str(f[3])),
        next_attempt_at=moment(f[4]),
    )


def _renewal(f: Fields) -> Renewal:
    return Renewal(
        job_id=_int(f[0]),
        token=_int(f[1]),
        outcome=LeaseRenewal(str(f[2])),
        lease_expires_at=moment(f[3]),
        cancel_requested=f[4] == "1",
    )


def _lapsed(f: Fields) -> LapsedLease:
    expires = moment(f[3])
    assert expires is not None
    return LapsedLease(
        job_id=_int(f[0]), worker_id=str(f[1]), token=_int(f[2]), lease_expires_at=expires
    )


def _held(f: Fields) -> HeldLease:
    expires = moment(f[2])
    assert expires is not None
    return HeldLease(job_id=_int(f[0]), token=_int(f[1]), lease_expires_at=expires)


def _job(f: Fields) -> JobAnswer:
    return JobAnswer(
        job_id=_int(f[0]), verdict=Verdict(str(f[1])), status=_status(f[2]), holder_pid=None
    )


def _queue(f: Fields) -> QueueAnswer:
    return QueueAnswer(
        queue=str(f[0]), verdict=Verdict(str(f[1])), paused_at=moment(f[2]), holder_pid=None
    )


def _enqueued(f: Fields) -> Enqueued:
    return Enqueued(job_id=_int(f[0]), created=f[1] == "1")


def _one(read: Callable[[Fields], Any]) -> Callable[[Sequence[Fields]], Any]:
    def only(rows: Sequence[Fields]) -> Any:
        [row] = rows
        return read(row)

    return only


def _maybe(read: Callable[[Fields], Any]) -> Callable[[Sequence[Fields]], Any]:
    return lambda rows: _one(read)(rows) if rows else None


def _all(read: Callable[[Fields], Any]) -> Callable[[Sequence[Fields]], Any]:
    return lambda rows: [read(row) for row in rows]


@dataclass(frozen=True, slots=True)
class Function:
    """How a function is called, and how its answer is read."""

    columns: str
    given: Callable[..., Given]
    read: Callable[[Sequence[Fields]], Any]


def _array(values: Sequence[Any]) -> str:
    return "{" + ",".join("null" if v is None else json.dumps(str(v)) for v in values) + "}"


def _lease_args(job_id: int, worker_id: str, token: int) -> Given:
    return [
        ("job_id", "bigint", job_id),
        ("worker_id", "text", worker_id),
        ("token", "bigint", token),
    ]


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
    "enqueue": Function("job_id, created::int", _enqueue, _one(_enqueued)),
    "claim": Function(LEASE, _claim, _all(_lease)),
    "claim_job": Function(
        LEASE,
        lambda job_id, worker_id: [("job_id", "bigint", job_id), ("worker_id", "text", worker_id)],
        _maybe(_lease),
    ),
    "next_eligible_job_id": Function(
        "next_eligible_job_id",
        lambda queues: [("queues", "text[]", _array(queues))],
        lambda rows: None if rows[0][0] is None else int(rows[0][0]),
    ),
    "renew": Function(RENEWAL, _renew, _all(_renewal)),
    "lapsed": Function(LAPSED, lambda: [("limit", "int", 100)], _all(_lapsed)),
    "held": Function(HELD, lambda worker_id: [("worker_id", "text", worker_id)], _all(_held)),
    "reclaim": Function(LEASE, _reclaim, _maybe(_lease)),
    "update_owned": Function(VERDICT, _update, _one(_settled)),
    "guard": Function("guard", _guard, lambda rows: None),
    "seal": Function(VERDICT, _with_result, _one(_settled)),
    "complete": Function(VERDICT, _with_result, _one(_settled)),
    "fail": Function(VERDICT, _fail, _one(_settled)),
    "release": Function(
        VERDICT,
        lambda job_id, worker_id, token, *, started: [
            *_lease_args(job_id, worker_id, token),
            ("started", "boolean", started),
        ],
        _one(_settled),
    ),
    "acknowledge_cancel": Function(VERDICT, _lease_args, _one(_settled)),
    "settle": Function(VERDICT, _settle, _all(_settled)),
    "sweep": Function(SWEPT, lambda worker_id: [("worker_id", "text", worker_id)], _all(_swept)),
    "cancel": Function(JOB, lambda job_id: [("job_id", "bigint", job_id)], _one(_job)),
    "cancel_requested": Function(
        "cancel_requested::int",
        lambda job_id: [("job_id", "bigint", job_id)],
        lambda rows: rows[0][0] == "1",
    ),
    "retry": Function(
        JOB,
        lambda job_id, attempts=1: [("job_id", "bigint", job_id), ("attempts", "int", attempts)],
        _one(_job),
    ),
    "pause": Function(QUEUE, lambda queue: [("queue", "text", queue)], _one(_queue)),
    "resume": Function(QUEUE, lambda queue: [("queue", "text", queue)], _one(_queue)),
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
