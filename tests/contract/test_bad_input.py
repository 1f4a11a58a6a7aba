"""Arguments that can never be right: one clear error, the same everywhere, nothing written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from tenure.errors import CancelRequested, InvalidArgument, JobUnknown, LeaseLost
from tenure.values import Failure, JobLease, LapsedLease, NewJob, Outcome, Verb
from tests.contract.backends import Backend
from tests.contract.scenario import BROKEN, SECOND, Scene

DAY = timedelta(days=1)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
YEARS = timedelta(days=3653)


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


Call = Callable[..., object]
"""Given a control plane and a lease that is current."""

CASES: dict[str, tuple[Call, str]] = {}


def case(name: str, says: str, call: Call) -> None:
    assert name not in CASES
    CASES[name] = call, says


NAMES: dict[str, tuple[Any, str]] = {
    "empty": ("", "is empty"),
    "blank at the front": (" x", "has a blank at its edge"),
    "blank at the end": ("x ", "has a blank at its edge"),
    "wide blank at the end": ("x\u3000", "has a blank at its edge"),
    "newline inside": ("a\nb", "has a control character"),
    "NUL inside": ("a\0b", "has a control character"),
    "DEL inside": ("a\x7fb", "has a control character"),
    "C1 control inside": ("a\x9fb", "has a control character"),
    "lone surrogate": ("a\ud800b", "has a lone surrogate"),
    "not text": (5, "is not a str: 5"),
    "nothing": (None, "is not a str: None"),
}
for fault, (name, message) in NAMES.items():
    case(f"queue, {fault}", f"queue {message}", lambda p, _, n=name: p.enqueue(n, "k"))
    case(f"kind, {fault}", f"kind {message}", lambda p, _, n=name: p.enqueue("q", n))
    case(f"worker, {fault}", f"worker_id {message}", lambda p, _, n=name: p.claim(["q"], n))
case("queue, 129 bytes", "queue is 129 bytes", lambda p, _: p.enqueue("x" * 129, "k"))
case("queue, 130 bytes", "queue is 130 bytes", lambda p, _: p.enqueue("é" * 65, "k"))
case("kind, 129 bytes", "kind is 129 bytes", lambda p, _: p.enqueue("q", "k" * 129))
case("worker, 257 bytes", "worker_id is 257 bytes", lambda p, _: p.claim(["q"], "w" * 257))
case("queues, none", "queues has 0 members", lambda p, _: p.claim([], "w"))
case("queues, one text", "queues is one str", lambda p, _: p.claim("mail", "w"))
case("queues, a bad one", "queues[1] is empty", lambda p, _: p.claim(["q", ""], "w"))
case(
    "queues, 1,001",
    "queues has 1001 members",
    lambda p, _: p.claim([str(i) for i in range(1001)], "w"),
)
case("read, no queues", "queues has 0 members", lambda p, _: p.next_eligible_job_id([]))
case("pause, bad queue", "queue is empty", lambda p, _: p.pause(""))
case("resume, bad queue", "queue has a control", lambda p, _: p.resume("a\tb"))
for verb in ("complete", "seal", "acknowledge_cancel"):
    case(
        f"{verb}, bad worker",
        "worker_id is empty",
        lambda p, x, v=verb: getattr(p, v)(x.job_id, "", x.token),
    )
case("held, bad worker", "worker_id is empty", lambda p, _: p.held(""))
case("sweep, bad worker", "worker_id is empty", lambda p, _: p.sweep(""))
case(
    "reclaim, bad worker",
    "new_worker_id is empty",
    lambda p, x: p.reclaim(
        LapsedLease(
            job_id=x.job_id,
            worker_id=x.worker_id,
            token=x.token,
            lease_expires_at=x.lease_expires_at,
        ),
        "",
    ),
)
case(
    "reclaim, naive instant",
    "lease_expires_at has no time zone",
    lambda p, x: p.reclaim(
        LapsedLease(
            job_id=x.job_id,
            worker_id=x.worker_id,
            token=x.token,
            lease_expires_at=datetime(2026, 1, 1),  # noqa: DTZ001
        ),
        "w",
    ),
)

for key, message in (
    ("", "is empty"),
    ("a\0b", "has a NUL"),
    ("a\udfff", "has a lone surrogate"),
    ("x" * (8 * 1024 + 1), "is 8193 bytes"),
    (7, "is not a str: 7"),
):
    case(
        f"dedup_key {message}",
        f"dedup_key {message}",
        lambda p, _, k=key: p.enqueue("q", "k", dedup_key=k),
    )


def job(option: str, value: Any) -> NewJob:
    return NewJob(kind="k", **{option: value})


for option, bad, message in (
    ("priority", -1, "is out of range: -1"),
    ("priority", 10, "is out of range: 10"),
    ("priority", None, "is not an int: None"),
    ("priority", True, "is not an int: True"),
    ("priority", 1.0, "is not an int: 1.0"),
    ("priority", "5", "is not an int: '5'"),
    ("max_attempts", 0, "is out of range: 0"),
    ("max_attempts", 1001, "is out of range: 1001"),
    ("delay", -timedelta(microseconds=1), "is out of range: -1e-06 s"),
    ("delay", YEARS + SECOND, "is out of range"),
    ("delay", 5, "is not a timedelta: 5"),
    ("timeout", timedelta(0), "is out of range: 0 s"),
    ("timeout", timedelta(milliseconds=99), "is out of range: 0.099 s"),
    ("timeout", YEARS + SECOND, "is out of range"),
    ("retry_base", -SECOND, "is out of range: -1 s"),
    ("retry_base", YEARS + SECOND, "is out of range"),
    ("retry_cap", -SECOND, "is out of range: -1 s"),
    ("retry_cap", YEARS + SECOND, "is out of range"),
    ("run_at", datetime(2026, 1, 1, 12), "has no time zone: 2026-01-01T12:00:00"),  # noqa: DTZ001
    ("run_at", "2026-01-01T12:00:00Z", "is not a datetime"),
    ("run_at", date(2026, 1, 1), "is not a datetime"),
):
    case(
        f"{option} = {bad!r}",
        f"{option} {message}",
        lambda p, _, o=option, b=bad: p.enqueue("q", "k", **{o: b}),
    )
    case(
        f"{option} = {bad!r} in a batch",
        f"jobs[1].{option} {message}",
        lambda p, _, o=option, b=bad: p.enqueue_many(
            [NewJob(kind="k"), NewJob(kind="k", **{o: b})]
        ),
    )
case(
    "run_at and delay",
    "run_at and delay are given together",
    lambda p, _: p.enqueue("q", "k", run_at=NOON, delay=SECOND),
)

for span in (timedelta(milliseconds=99), timedelta(0), -SECOND, DAY + timedelta(milliseconds=1)):
    says = "lease_for is out of range"
    case(f"claim for {span}", says, lambda p, _, s=span: p.claim(["q"], "w", lease_for=s))
    case(
        f"claim_job for {span}", says, lambda p, x, s=span: p.claim_job(x.job_id, "w", lease_for=s)
    )
    case(
        f"renew for {span}",
        says,
        lambda p, x, s=span: p.renew("ada", [(x.job_id, x.token)], lease_for=s),
    )
    case(
        f"update for {span}",
        says,
        lambda p, x, s=span: p.update_owned(x.job_id, "ada", x.token, progress=1, lease_for=s),
    )
case(
    "fail, negative delay",
    "delay is out of range: -1 s",
    lambda p, x: p.fail(x.job_id, "ada", x.token, BROKEN, delay=-SECOND),
)
case(
    "release, negative delay",
    "delay is out of range: -1 s",
    lambda p, x: p.release(x.job_id, "ada", x.token, started=True, delay=-SECOND),
)

NOT_JSON: dict[str, tuple[Any, str]] = {
    "NUL in a text": ({"a": "x\0y"}, ".a: a str with a NUL"),
    "NUL in a list": ([{"a": [0, "\0"]}], "[0].a[1]: a str with a NUL"),
    "NUL in a key": ({"a": {"x\0": 1}}, ".a: the key 'x\\x00' is a str with a NUL"),
    "lone surrogate": (["\ud800"], "[0]: a str with a lone surrogate"),
    "NaN": ({"a": float("nan")}, ".a: nan is not JSON"),
    "infinity": ([float("inf")], "[0]: inf is not JSON"),
    "negative infinity": ([float("-inf")], "[0]: -inf is not JSON"),
    "Decimal": (
        {"items": [0, 1, 2, {"price": Decimal("1.10")}]},
        ".items[3].price: Decimal is not JSON",
    ),
    "datetime": ({"at": NOON}, ".at: datetime is not JSON"),
    "date": ({"at": date(2026, 1, 1)}, ".at: date is not JSON"),
    "UUID": ({"id": UUID(int=1)}, ".id: UUID is not JSON"),
    "bytes": (b"x", ": bytes is not JSON"),
    "set": ({"a b": {1}}, "['a b']: set is not JSON"),
    "object": (object(), ": object is not JSON"),
    "large int": ([2**63], f"[0]: an int beyond ±{2**63 - 1}"),
    "large negative int": ([-(2**63)], f"[0]: an int beyond ±{2**63 - 1}"),
    "large float": ([1e16], "[0]: the float 1e+16"),
    "bool key": ({True: 1}, ": a key of type bool is not JSON"),
    "float key": ({1.5: 1}, ": a key of type float is not JSON"),
    "tuple key": ({(1, 2): 1}, ": a key of type tuple is not JSON"),
    "one key twice": ({1: "a", "1": "b"}, ": the key 1 is there as int and as str"),
    "65 deep": (deep(65), " is nested more than 64 deep"),
    "20,000 deep": (deep(20_000), " is nested more than 64 deep"),
}
for fault, (value, message) in NOT_JSON.items():
    case(f"payload, {fault}", f"payload{message}", lambda p, _, v=value: p.enqueue("q", "k", v))
    case(
        f"result, {fault}",
        f"result{message}",
        lambda p, x, v=value: p.complete(x.job_id, "ada", x.token, v),
    )
case("meta not JSON", "meta.a: set is not JSON", lambda p, _: p.enqueue("q", "k", meta={"a": {1}}))
case(
    "progress not JSON",
    "progress[0]: nan is not JSON",
    lambda p, x: p.update_owned(x.job_id, "ada", x.token, progress=[float("nan")]),
)
case(
    "sealed result not JSON",
    "result.a: a str with a NUL",
    lambda p, x: p.seal(x.job_id, "ada", x.token, {"a": "\0"}),
)
case(
    "payload of a batch not JSON",
    "jobs[1].payload.a: Decimal is not JSON",
    lambda p, _: p.enqueue_many(
        [NewJob(kind="k"), NewJob(kind="k", payload={"a": Decimal(1)}), NewJob(kind="k")]
    ),
)
case(
    "result of a settle not JSON",
    "outcomes[0].result.a: a str with a NUL",
    lambda p, x: p.settle(
        "ada",
        [Outcome(job_id=x.job_id, token=x.token, verb=Verb.COMPLETE, result={"a": "\0"})],
    ),
)
MEBIBYTE = 1024 * 1024
case(
    "payload too large",
    f"payload is {MEBIBYTE + 1} bytes as JSON",
    lambda p, _: p.enqueue("q", "k", "x" * (MEBIBYTE - 1)),
)
case(
    "payload too large in bytes",
    f"payload is {MEBIBYTE + 2} bytes as JSON",
    lambda p, _: p.enqueue("q", "k", "é" * (MEBIBYTE // 2)),
)
case(
    "result too large",
    f"result is {MEBIBYTE + 1} bytes as JSON",
    lambda p, x: p.complete(x.job_id, "ada", x.token, "x" * (MEBIBYTE - 1)),
)
case(
    "meta too large",
    f"meta is {16 * 1024 + 1} bytes as JSON",
    lambda p, _: p.enqueue("q", "k", meta="x" * (16 * 1024 - 1)),
)
case(
    "progress too large",
    f"progress is {16 * 1024 + 1} bytes as JSON",
    lambda p, x: p.update_owned(x.job_id, "ada", x.token, progress="x" * (16 * 1024 - 1)),
)

for count, message in (
    (0, "is out of range: 0"),
    (-1, "is out of range: -1"),
    (1001, "is out of range: 1001"),
    (None, "is not an int: None"),
    (True, "is not an int: True"),
):
    case(
        f"claim {count}",
        f"max_jobs {message}",
        lambda p, _, n=count: p.claim(["q"], "w", max_jobs=n),
    )
for limit, message in (
    (0, "is out of range: 0"),
    (10_001, "is out of range: 10001"),
    (None, "is not an int: None"),
):
    case(f"sweep {limit}", f"limit {message}", lambda p, _, n=limit: p.sweep("w", n))
    case(f"lapsed {limit}", f"limit {message}", lambda p, _, n=limit: p.lapsed(n))
case("renew nothing", "leases has 0 members", lambda p, _: p.renew("w", []))
case("renew 1,001", "leases has 1001 members", lambda p, _: p.renew("w", [(1, 1)] * 1001))
case("settle nothing", "outcomes has 0 members", lambda p, _: p.settle("w", []))
case(
    "settle 1,001",
    "outcomes has 1001 members",
    lambda p, _: p.settle(
        "w", [Outcome(job_id=i, token=1, verb=Verb.COMPLETE) for i in range(1001)]
    ),
)
case("enqueue nothing", "jobs has 0 members", lambda p, _: p.enqueue_many([]))
case(
    "enqueue 10,001",
    "jobs has 10001 members",
    lambda p, _: p.enqueue_many([NewJob(kind="k")] * 10_001),
)
case("retry no times", "attempts is out of range: 0", lambda p, x: p.retry(x.job_id, 0))
case("retry 1,001 times", "attempts is out of range", lambda p, x: p.retry(x.job_id, 1001))


def settle(*outcomes: Any) -> Call:
    return lambda p, x: p.settle("ada", [make(x) for make in outcomes])


def of(verb: Any, **options: Any) -> Callable[[Any], Outcome]:
    return lambda x: Outcome(job_id=x.job_id, token=x.token, verb=verb, **options)


case(
    "settle one job twice",
    "is in outcomes twice",
    settle(of(Verb.COMPLETE), of(Verb.RELEASE, started=False)),
)
case("settle, unknown verb", "outcomes[0].verb is not known: 'finish'", settle(of("finish")))
case("settle, fail without why", "outcomes[0].failure is missing", settle(of(Verb.FAIL)))
case(
    "settle, complete with a failure",
    "outcomes[0].failure is given to complete",
    settle(of(Verb.COMPLETE, failure=BROKEN)),
)
case(
    "settle, negative delay",
    "outcomes[0].delay is out of range: -1 s",
    settle(of(Verb.RELEASE, delay=-SECOND)),
)
case(
    "fail, a message that is no text",
    "message is not a str: None",
    lambda p, x: p.fail(x.job_id, "ada", x.token, Failure(error_type="E", message=None)),  # type: ignore[arg-type]
)
for argument, shown in (("job_id", (2**63, "ada", 1)), ("token", (1, "ada", 2**63))):
    case(
        f"{argument} wider than 64 bits",
        f"{argument} is out of range",
        lambda p, _, s=shown: p.complete(*s),
    )
case("job_id is text", "job_id is not an int: '1'", lambda p, _: p.cancel("1"))
case("job_id is nothing", "job_id is not an int: None", lambda p, _: p.claim_job(None, "w"))


@pytest.fixture(scope="module")
def leases(every_backend: list[Backend]) -> list[JobLease]:
    """A running job of each backend, which nothing here can change."""
    return [Scene(backend.control_plane, backend.clock).lease() for backend in every_backend]


def everything(backend: Backend) -> object:
    jobs = backend.records.jobs(limit=1000)
    return jobs, backend.records.queues(), [backend.records.attempts(j.job_id) for j in jobs]


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_alike_everywhere_and_nothing_is_written(
    every_backend: list[Backend], leases: list[JobLease], name: str
) -> None:
    call, says = CASES[name]
    refusals = set()
    for backend, lease in zip(every_backend, leases, strict=True):
        before = everything(backend)

        with pytest.raises(InvalidArgument) as caught:
            call(backend.control_plane, lease)

        assert everything(backend) == before
        assert isinstance(caught.value, ValueError)
        message = str(caught.value).replace(f"job {lease.job_id} ", "job N ")
        refusals.add((message, caught.value.hint))
    [(message, hint)] = refusals
    assert says in message
    assert hint


def guarded(backend: Backend, job_id: int, token: int) -> None:
    with backend.transaction() as caller:
        caller.control_plane.guard(job_id, "ada", token)


def test_what_only_the_database_can_know_is_said_alike_everywhere(
    every_backend: list[Backend],
) -> None:
    said = set()
    for backend in every_backend:
        lease = Scene(backend.control_plane, backend.clock).lease()
        job_id = lease.job_id
        with pytest.raises(JobUnknown) as unknown:
            backend.control_plane.cancel(987_654)
        with pytest.raises(LeaseLost) as lost:
            guarded(backend, job_id, lease.token + 1)
        backend.control_plane.cancel(job_id)
        with pytest.raises(CancelRequested) as cancelled:
            guarded(backend, job_id, lease.token)
        texts = (str(caught.value) for caught in (unknown, lost, cancelled))
        said.add(tuple(text.replace(f"job {job_id} ", "job N ") for text in texts))

    [(unknown_text, lost_text, cancelled_text)] = said
    assert unknown_text.startswith("job 987654 is unknown (")
    assert lost_text.startswith("lease 2 on job N is lost (")
    assert cancelled_text.startswith("the cancellation of job N was requested (")


def test_a_run_at_more_than_ten_years_ahead_is_refused(every_backend: list[Backend]) -> None:
    for backend in every_backend:
        plane, before = backend.control_plane, everything(backend)
        furthest = backend.clock.now + YEARS
        for late in (furthest + timedelta(microseconds=1), datetime.max.replace(tzinfo=UTC)):
            with pytest.raises(InvalidArgument, match="run_at is"):
                plane.enqueue("q", "k", run_at=late)
            with pytest.raises(InvalidArgument, match="run_at is"):
                plane.enqueue_many([NewJob(kind="k"), NewJob(kind="k", run_at=late)])
        assert everything(backend) == before
        assert plane.enqueue("q", "k", run_at=furthest).created
