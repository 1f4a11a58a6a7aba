"""What a claim and a settlement cost, whatever waits, is delayed or has died."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias

import pytest

from tests.postgres.explained import Explaining, Shape, claim_one, explaining, parts
from tests.postgres.races import (
    Connection,
    call,
    connected,
    enqueued,
    leased,
    one,
    owner,
)
from tests.tools import databases

pytestmark = pytest.mark.timeout(240)

Run: TypeAlias = Callable[[Connection, Any], object]

STATISTICS = ("of an empty table", "none of a million rows", "fresh")


@dataclass(frozen=True, slots=True)
class Measured:
    """One table, filled step by step, and what was seen on the way."""

    shapes: dict[str, dict[str, dict[str, Shape]]] = field(default_factory=dict)
    """By the state of the statistics, the verb, and the statement."""
    buffers: dict[str, list[int]] = field(default_factory=dict)
    """By what is in the way, once for n and once for 10 n rows of it."""

    def note(self, what: str, buffers: int) -> None:
        self.buffers.setdefault(what, []).append(buffers)


@pytest.fixture(scope="module")
def measured(migrated_database: str) -> Iterator[Measured]:
    name = databases.new_name("plans")
    with databases.database(name, template=migrated_database), ExitStack() as stack:
        dsn = databases.url(name)

        def session() -> Connection:
            connection = stack.enter_context(connected(dsn))
            connection.execute("set statement_timeout = '2min'")
            return connection

        yield _measure(session)


def _measure(session: Callable[[], Connection]) -> Measured:
    measured, hand = Measured(), session()
    hand.execute("alter table tenure.job set (autovacuum_enabled = off)")
    hand.execute("analyze tenure.job, tenure.job_history, tenure.attempt, tenure.queue")
    call(hand, "worker_seen", "ada", ["q"])
    _insert(hand, 2_000)
    _warm(session())  # so that floors are published, which the sweep then looks behind
    measured.shapes["of an empty table"] = _shapes(session)

    for rows in (40_000, 360_000):
        _insert(hand, rows, priority=0, due="clock_timestamp() + interval '7 days'")
        measured.note("delayed jobs before it", _warm(session()).buffers(claim_one))

    _insert(hand, 100, queue="solo", priority=9)
    for rows in (2_000, 18_000):
        _insert(hand, rows, queue="solo", solo=True)
        explained = _warm(session(), _claim_beside_solo)
        measured.note("solo jobs before it", explained.buffers(_claim_beside_solo))
        measured.note("a solo job and others", explained.buffers(_claim_with_solo))

    _insert(hand, 580_000)
    measured.note("delayed jobs before it", _warm(session()).buffers(claim_one))
    measured.shapes["none of a million rows"] = _shapes(session)
    hand.execute("analyze tenure.job, tenure.job_history, tenure.attempt, tenure.queue")
    measured.shapes["fresh"] = _shapes(session)

    for what, begin in (
        ("dead rows under a snapshot", "begin isolation level repeatable read"),
        ("dead rows under a write transaction", "begin; select pg_current_xact_id()"),
    ):
        holder, claimer = session(), session()
        holder.execute(begin)
        holder.execute("select count(*) from tenure.queue")
        for rows in (20_000, 180_000):
            _delete(hand, rows)
            hand.execute("update tenure.queue set floors_published_at = '-infinity'")
            measured.note(what, _warm(claimer, seconds=1.2).buffers(claim_one))
            newcomer = explaining(session())
            for _ in range(3):
                claim_one(newcomer.connection)
            measured.note(f"{what}, in a new session", newcomer.buffers(claim_one))
        holder.execute("rollback")
    return measured


def _insert(
    connection: Connection,
    rows: int,
    *,
    queue: str = "q",
    priority: int = 5,
    solo: bool = False,
    due: str = "clock_timestamp()",
) -> None:
    connection.execute(
        f"""
        insert into tenure.job (queue, kind, priority, solo, next_attempt_at, created_at,
                                max_attempts, token_limit)
        select %s, 'work', %s, %s, {due}, clock_timestamp(), 5, 150
          from generate_series(1, {rows})
        """,
        [queue, priority, solo],
    )


def _delete(connection: Connection, rows: int) -> None:
    """Take the jobs that a claim would take next; their index entries stay."""
    connection.execute(
        f"""
        delete from tenure.job
         where ctid = any (array(
                 select j.ctid
                   from tenure.job as j
                  where j.status = 'queued' and j.queue = 'q' and j.priority = 5 and not j.solo
                  order by j.next_attempt_at, j.id
                  limit {rows}))
        """
    )


def _warm(
    connection: Connection,
    claim: Callable[[Connection], object] = claim_one,
    seconds: float = 0.11,
) -> Explaining:
    """Claim until caches are filled and the floors came forward twice."""
    for _ in range(3):
        claim(connection)
        time.sleep(seconds)
    for _ in range(3):
        claim(connection)
    return explaining(connection)


def _claim_beside_solo(connection: Connection) -> None:
    assert len(call(connection, "claim", ["solo"], "ada", solo=False)) == 1


def _claim_with_solo(connection: Connection) -> None:
    leases = call(connection, "claim", ["solo"], "ada", 2)
    assert [lease.solo for lease in leases] == [True, False]


def _shapes(session: Callable[[], Connection]) -> dict[str, dict[str, Shape]]:
    """The plans of each verb, in a session that has cached none."""
    helper = session()

    def shapes(prepare: Callable[[Connection], Any], run: Run) -> dict[str, Shape]:
        what = prepare(helper)
        with closing(session()) as fresh:
            return explaining(fresh).shapes(lambda connection: run(connection, what))

    return {verb: shapes(*acts) for verb, acts in VERBS.items()}


def _lapsed(connection: Connection) -> Any:
    lease = leased(connection, lease_for=timedelta(milliseconds=100))
    connection.execute(
        "update tenure.job set lease_expires_at = claimed_at - interval '1 hour' where id = %s",
        [lease.job_id],
    )
    connection.execute("update tenure.install set stragglers_sought_at = '-infinity'")
    [lapsed] = [row for row in call(connection, "lapsed", 1000) if row.job_id == lease.job_id]
    return lapsed


def _four(connection: Connection) -> list[Any]:
    return [leased(connection) for _ in range(4)]


def _settle(connection: Connection, leases: list[Any]) -> None:
    verbs = ["complete", "fail", "release", "acknowledge_cancel"]
    job_ids, tokens = [a.job_id for a in leases], [a.token for a in leases]
    assert len(call(connection, "settle", "ada", job_ids, tokens, verbs)) == 4
    # The same again is answered from the history.
    assert len(call(connection, "settle", "ada", job_ids, tokens, verbs)) == 4


def _failed(connection: Connection) -> int:
    lease = leased(connection)
    one(connection, "fail", *owner(lease), "Broken", retryable=False)
    return int(lease.job_id)


VERBS: dict[str, tuple[Callable[[Connection], Any], Run]] = {
    "claim": (lambda c: None, lambda c, _: call(c, "claim", ["q"], "ada")),
    "claim of ten": (lambda c: None, lambda c, _: call(c, "claim", ["q", "r"], "ada", 10)),
    "next_eligible_job_id": (lambda c: None, lambda c, _: call(c, "next_eligible_job_id", ["q"])),
    "next_due": (lambda c: None, lambda c, _: call(c, "next_due", ["q"])),
    "claim_job": (enqueued, lambda c, job_id: call(c, "claim_job", job_id, "ada")),
    "renew": (leased, lambda c, a: call(c, "renew", "ada", [a.job_id, 0], [a.token, 1])),
    "update_owned": (leased, lambda c, a: call(c, "update_owned", *owner(a))),
    "guard": (leased, lambda c, a: call(c, "guard", *owner(a))),
    "seal": (leased, lambda c, a: call(c, "seal", *owner(a))),
    "complete": (leased, lambda c, a: call(c, "complete", *owner(a))),
    "fail": (leased, lambda c, a: call(c, "fail", *owner(a), "Broken")),
    "fail for good": (leased, lambda c, a: call(c, "fail", *owner(a), "Broken", retryable=False)),
    "release": (leased, lambda c, a: call(c, "release", *owner(a), True)),
    "acknowledge_cancel": (leased, lambda c, a: call(c, "acknowledge_cancel", *owner(a))),
    "settle": (_four, _settle),
    "reclaim": (_lapsed, lambda c, a: call(c, "reclaim", *owner(a), a.lease_expires_at, "bob")),
    "sweep": (_lapsed, lambda c, _: call(c, "sweep", "ada")),
    "cancel": (enqueued, lambda c, job_id: call(c, "cancel", job_id)),
    "cancel of a running job": (leased, lambda c, a: call(c, "cancel", a.job_id)),
    "retry": (_failed, lambda c, job_id: call(c, "retry", job_id)),
}


@pytest.mark.parametrize("verb", VERBS)
def test_the_plans_are_the_same_whatever_the_statistics_of(measured: Measured, verb: str) -> None:
    first, *others = (measured.shapes[statistics][verb] for statistics in STATISTICS)

    assert first
    for other in others:
        assert other == first


@pytest.mark.parametrize("statistics", STATISTICS)
def test_no_verb_reads_a_table_from_end_to_end_with_statistics(
    measured: Measured, statistics: str
) -> None:
    found = {
        (verb, part)
        for verb, shapes in measured.shapes[statistics].items()
        for shape in shapes.values()
        for part in parts(shape)
        if part[1] not in {"install", "queue"}
        and part[0] in {"Seq Scan", "Bitmap Heap Scan", "Hash Join", "Merge Join"}
    }

    assert found == set()


def test_a_claim_reads_a_range_of_the_lanes_index_and_updates_by_row_address(
    measured: Measured,
) -> None:
    [update] = [
        shape
        for query, shape in measured.shapes["fresh"]["claim"].items()
        if "set status = 'running'" in query
    ]

    assert [part for part in parts(update) if part[1] is not None] == [
        ("ModifyTable", "job", None),
        ("Index Scan", "job", "job_lane"),
        ("Tid Scan", "job", None),
    ]


@pytest.mark.parametrize("verb", ["complete", "fail", "release", "acknowledge_cancel", "settle"])
def test_a_settlement_finds_each_job_by_its_primary_key(measured: Measured, verb: str) -> None:
    [update] = [
        shape
        for query, shape in measured.shapes["fresh"][verb].items()
        if "update job as j" in query
    ]

    assert {part for part in parts(update) if part[1] == "job" and part[0] != "ModifyTable"} == {
        ("Index Scan", "job", "job_pkey")
    }


@pytest.mark.parametrize(
    "before",
    [
        "delayed jobs before it",
        "solo jobs before it",
        "a solo job and others",
        "dead rows under a snapshot",
        "dead rows under a snapshot, in a new session",
        "dead rows under a write transaction",
        "dead rows under a write transaction, in a new session",
    ],
)
def test_a_claim_costs_the_same_with_ten_times_as_many(measured: Measured, before: str) -> None:
    first, *others = measured.buffers[before]

    assert first < 100
    for other in others:
        assert abs(other - first) <= 10, measured.buffers
