"""Ids beyond 32 bits, payloads beyond a notification, and plans that nobody would choose."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from psycopg.types.json import Jsonb

from tenure.postgres import PostgresControlPlane
from tenure.postgres_records import PostgresRecords
from tests.postgres.every_function import Caller, call_every_function
from tests.postgres.races import SECOND, Connection, SteppedClock, call, enqueued, leased, one

Session = Callable[[], Connection]

LAST_OF_32_BITS = 2**31 - 1


@pytest.fixture
def connection(session: Session) -> Connection:
    return session()


def test_ids_beyond_32_bits_go_through_every_function(connection: Connection) -> None:
    """O13."""
    connection.execute("select setval('tenure.job_id_seq', %s)", [LAST_OF_32_BITS - 2])
    caller = Caller(connection)

    ids = call_every_function(caller, caller, caller)

    assert ids == list(range(LAST_OF_32_BITS - 1, LAST_OF_32_BITS + 9))
    listed = connection.execute("select job_id from tenure.jobs order by 1").fetchall()
    assert [job_id for (job_id,) in listed] == ids
    [(attempts,)] = connection.execute(
        "select count(*) from tenure.attempts where job_id > %s", [LAST_OF_32_BITS]
    ).fetchall()
    assert attempts > 0

    connection.execute("update tenure.test_clock set at = now() + interval '40 days'")
    call(connection, "maintain")
    [(kept,)] = connection.execute("select count(*) from tenure.job_history").fetchall()
    assert kept == 0
    live = connection.execute("select id from tenure.job").fetchall()
    noted = connection.execute("select distinct job_id from tenure.attempt").fetchall()
    assert set(noted) <= set(live)


def test_ids_beyond_32_bits_go_through_the_client(connection: Connection) -> None:
    """O13."""
    connection.execute("select setval('tenure.job_id_seq', %s)", [2**62])
    plane, records = PostgresControlPlane(connection), PostgresRecords(connection)
    job_id = plane.enqueue("q", "work").job_id
    assert job_id == 2**62 + 1
    [lease] = plane.claim(["q"], "ada")

    [renewal] = plane.renew("ada", [(lease.job_id, lease.token)])
    assert renewal.job_id == job_id
    assert plane.cancel(job_id).job_id == job_id
    assert plane.acknowledge_cancel(job_id, "ada", lease.token).job_id == job_id
    record = records.job(job_id)
    assert record is not None
    assert [attempt.job_id for attempt in records.attempts(job_id)] == [job_id]


@pytest.mark.parametrize("size", [8_192, 100_000, 900_000])
def test_a_large_payload_wakes_a_sleeper_as_a_small_one_does(
    connection: Connection, session: Session, size: int
) -> None:
    """O18."""
    sleeper = session()
    sleeper.execute(f"listen {one(sleeper, 'channel')[0]}".encode())
    assert one(sleeper, "sleep_begin", ["q"])[0] is not None

    job_id = enqueued(connection, payload=Jsonb("x" * size), dedup_key="k" * 8_192)

    sleeper.execute("select 1")
    [notice] = sleeper.notifies(timeout=0)
    assert notice.payload == f"q{one(sleeper, 'queue_key', 'q')[0]}"
    lease = one(connection, "claim_job", job_id, "ada")
    assert len(lease.payload) == size
    assert one(connection, "cancel", job_id).verdict == "ok"


def test_ten_thousand_jobs_send_one_notification_to_each_queue(
    connection: Connection, session: Session
) -> None:
    """O18."""
    sleeper = session()
    sleeper.execute(f"listen {one(sleeper, 'channel')[0]}".encode())
    assert one(sleeper, "sleep_begin", ["q0", "q1"])[0] is not None

    jobs = [{"queue": f"q{n % 3}", "kind": "work"} for n in range(10_000)]
    assert len(call(connection, "enqueue_many", Jsonb(jobs))) == 10_000

    sleeper.execute("select 1")
    heard = sorted(notice.payload for notice in sleeper.notifies(timeout=0))
    assert heard == sorted(f"q{one(sleeper, 'queue_key', q)[0]}" for q in ("q0", "q1"))


HOSTILE = [
    "enable_seqscan = on",
    "enable_hashjoin = off",
    "enable_mergejoin = off",
    "enable_hashagg = off",
    "enable_sort = off",
    "enable_incremental_sort = off",
    "enable_indexscan = off",
    "enable_indexonlyscan = off",
    "enable_bitmapscan = off",
    "enable_tidscan = off",
    "enable_material = off",
    "enable_memoize = off",
    "plan_cache_mode = force_custom_plan",
    "random_page_cost = 1000000",
    "from_collapse_limit = 1",
    "join_collapse_limit = 1",
]
"""What a caller may set; it made an `in (select ... limit 1)` take all 200 rows."""


@pytest.mark.parametrize("nested_loops", ["on", "off"])
@pytest.mark.parametrize("limit", [1, 5])
def test_a_limit_is_kept_under_the_worst_plans(
    connection: Connection, clock: SteppedClock, limit: int, nested_loops: str
) -> None:
    """O26."""
    call(connection, "enqueue_many", Jsonb([{"queue": "q", "kind": "work"}] * 200))
    for setting in (*HOSTILE, f"enable_nestloop = {nested_loops}"):
        connection.execute(f"set {setting}".encode())

    claimed = call(connection, "claim", ["q"], "ada", limit, SECOND)
    assert len(claimed) == limit
    assert _running(connection) == sorted(lease.job_id for lease in claimed)

    candidate = one(connection, "next_eligible_job_id", ["q"])[0]
    assert len(call(connection, "claim_job", candidate, "ada", SECOND)) == 1
    assert len(_running(connection)) == limit + 1

    call(connection, "claim", ["q"], "ada", 100, SECOND)
    clock.advance(timedelta(seconds=2))
    assert len(call(connection, "lapsed", limit)) == limit
    swept = call(connection, "sweep", "broom", limit)
    assert len(swept) == limit
    assert len(_running(connection)) == 101


def _running(connection: Connection) -> list[int]:
    rows = connection.execute("select id from tenure.job where status = 'running' order by 1")
    return [job_id for (job_id,) in rows.fetchall()]


def test_the_worst_plans_change_no_verdict(connection: Connection) -> None:
    """O26."""
    for setting in (*HOSTILE, "enable_nestloop = off"):
        connection.execute(f"set {setting}".encode())
    caller = Caller(connection)
    call_every_function(caller, caller, caller)
    lease = leased(connection)
    assert caller.verb("complete", lease) == ("ok", "completed")
    assert caller.verb("complete", lease) == ("already", "completed")
