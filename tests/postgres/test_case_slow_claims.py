"""O30, O31: what keeps a claim's cost where it is, and rows of every kind that stand in its way."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from psycopg.types.json import Jsonb

from tests.postgres.explained import explaining
from tests.postgres.races import MINUTE, Connection, call, leased

Session = Callable[[], Connection]

BATCH = 500
JOBS = 3

IN_THE_WAY = {
    "due next week, at top priority": (
        "'q', 0, 0, clock_timestamp() + interval '7 days', 'queued', null, null, null"
    ),
    "in backoff": "'q', 3, 2, clock_timestamp() + interval '1 hour', 'queued', null, null, null",
    "running": (
        "'q', 5, 1, clock_timestamp(), 'running', 'bob', clock_timestamp(),"
        " date_trunc('milliseconds', clock_timestamp() + interval '1 hour')"
    ),
    "of a queue that nobody serves": (
        "'other', 0, 0, clock_timestamp(), 'queued', null, null, null"
    ),
}


@pytest.fixture
def connection(session: Session) -> Connection:
    connection = session()
    connection.execute("alter table tenure.job set (autovacuum_enabled = off)")
    return connection


def stand_in_the_way(connection: Connection, values: str, rows: int) -> None:
    connection.execute(
        f"""
        insert into tenure.job
               (queue, priority, attempt, next_attempt_at, status, worker_id, claimed_at,
                lease_expires_at, kind, created_at, max_attempts, token_limit)
        select {values}, 'work', clock_timestamp(), 5, 150
          from generate_series(1, {rows})
        """.encode()
    )


def claim_ten(connection: Connection) -> None:
    assert len(call(connection, "claim", ["q"], "ada", 10)) == 10


def test_a_claim_of_ten_steps_over_rows_of_every_kind(
    session: Session, connection: Connection
) -> None:
    """O31, on a smaller scale: in pages, with n and with 10 n rows of each."""
    seen = []
    for rows in (1_000, 9_000):
        for values in IN_THE_WAY.values():
            stand_in_the_way(connection, values, rows)
        jobs = [{"queue": "q", "kind": "work", "priority": 9}] * 60
        call(connection, "enqueue_many", Jsonb(jobs))
        explained = explaining(session())
        claim_ten(explained.connection)
        seen.append(explained.buffers(claim_ten))

    assert max(seen) < 250, seen
    assert abs(seen[1] - seen[0]) <= 30, seen


def test_cycles_under_an_old_snapshot_leave_nothing_that_claims_walk_over(
    session: Session, connection: Connection
) -> None:
    """O30, on a smaller scale: 4,000 cycles. No claim waits; only its pages are counted."""
    holder, claimer = session(), session()
    holder.execute("begin isolation level repeatable read; select from tenure.queue")
    seen = []
    for _ in range(2):
        for _ in range(2_000 // BATCH):
            cycle(claimer)
        call(connection, "enqueue_many", Jsonb([{"queue": "q", "kind": "work"}] * 80))
        bring_floors_forward(claimer)
        explained = explaining(claimer)
        claim_ten(claimer)
        seen.append(explained.buffers(claim_ten))
        # What is left of them is in nobody's way.
        connection.execute("delete from tenure.job")

    holder.execute("rollback")
    assert abs(seen[1] - seen[0]) <= 30, seen


def bring_floors_forward(connection: Connection) -> None:
    """They come forward once in 100 ms, in a claim."""
    for _ in range(3):
        assert len(call(connection, "claim", ["q"], "ada")) == 1
        time.sleep(0.11)


def cycle(connection: Connection) -> None:
    call(connection, "enqueue_many", Jsonb([{"queue": "q", "kind": "work"}] * BATCH))
    leases = call(connection, "claim", ["q"], "ada", BATCH)
    job_ids, tokens = [lease.job_id for lease in leases], [lease.token for lease in leases]
    call(connection, "renew", "ada", job_ids, tokens)
    call(connection, "settle", "ada", job_ids, tokens, ["complete"] * len(leases))


def test_a_renewal_touches_no_index(connection: Connection) -> None:
    """O30: every version of the row that a renewal makes is heap-only.

    As long as the page has room, which for so few it has, whoever holds dead versions back.
    """
    leases = [leased(connection) for _ in range(JOBS)]
    job_ids, tokens = [lease.job_id for lease in leases], [lease.token for lease in leases]

    for _ in range(2):
        connection.execute("begin")
        before = updates(connection)
        call(connection, "renew", "ada", job_ids, tokens, MINUTE)
        after = updates(connection)
        connection.execute("commit")
        assert [now - then for then, now in zip(before, after, strict=True)] == [JOBS, JOBS]


def updates(connection: Connection) -> tuple[int, int]:
    """The updates of the present transaction, and those of them that were heap-only."""
    [row] = connection.execute(
        """
        select pg_stat_get_xact_tuples_updated('tenure.job'::regclass),
               pg_stat_get_xact_tuples_hot_updated('tenure.job'::regclass)
        """
    ).fetchall()
    return int(row[0]), int(row[1])


def test_the_live_table_comes_with_room_on_its_pages_and_a_vacuum_of_its_own(
    connection: Connection,
) -> None:
    """O30."""
    [(options,)] = connection.execute(
        "select c.reloptions from pg_class as c where c.oid = 'tenure.job'::regclass"
    ).fetchall()

    settings = dict(option.split("=") for option in options)
    assert int(settings["fillfactor"]) <= 80
    assert float(settings["autovacuum_vacuum_scale_factor"]) == 0.0
    assert int(settings["autovacuum_vacuum_threshold"]) <= 10_000
    assert settings["autovacuum_vacuum_cost_delay"] == "0"
