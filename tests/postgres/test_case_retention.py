"""O32: what is past its keep time goes in bounded steps, whoever is killed, beside live traffic."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.postgres.races import (
    LONGEST_WAIT,
    MINUTE,
    Connection,
    call,
    enqueued,
    leased,
    one,
    owner,
    pid,
    started,
    wait_until_blocked,
)

Session = Callable[[], Connection]

DAY = timedelta(days=1)
OLD = datetime(2031, 1, 1, 12, tzinfo=UTC)
NOW = OLD + 32 * DAY
"""The partitions of two days are past their time by then."""

FIRST, SECOND_DAY = "job_history_20310101", "job_history_20310102"


@pytest.fixture
def connection(session: Session) -> Connection:
    """Two old days with a job of every end, and partitions for today."""
    connection = session()
    stand_at(connection, NOW)
    call(connection, "maintain")
    for day in (OLD, OLD + DAY):
        stand_at(connection, day)
        call(connection, "maintain")
        end_jobs(connection)
    stand_at(connection, NOW)
    return connection


def stand_at(connection: Connection, instant: datetime) -> None:
    connection.execute("update tenure.test_clock set at = %s", [instant])


def end_jobs(connection: Connection) -> None:
    one(connection, "complete", *owner(leased(connection)))
    one(connection, "fail", *owner(leased(connection)), "Broken", retryable=False)
    one(connection, "cancel", enqueued(connection))


def add_attempts(connection: Connection, name: str, count: int) -> None:
    """Give the failed job of a day some attempts more."""
    connection.execute(
        f"""
        insert into tenure.attempt
               (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome)
        select h.id, 1 + n, h.finished_at, h.finished_at, 1, 'ada', 'sweep', 'lost'
          from tenure.{name} as h, generate_series(1, %s) as n
         where h.status = 'failed'
        """.encode(),
        [count],
    )


def maintain(connection: Connection) -> list[str]:
    return [line for (line,) in call(connection, "maintain")]


def count(connection: Connection, table: str) -> int:
    [(rows,)] = connection.execute(f"select count(*) from tenure.{table}".encode()).fetchall()
    return int(rows)


def test_jobs_of_every_end_go_with_their_attempts(connection: Connection) -> None:
    ends = connection.execute("select distinct status::text from tenure.job_history").fetchall()
    assert {status for (status,) in ends} == {"completed", "failed", "cancelled"}

    assert maintain(connection) == [f"dropped {FIRST}", f"dropped {SECOND_DAY}"]

    assert count(connection, "job_history") == 0
    assert count(connection, "attempt") == 0


def test_a_call_deletes_ten_thousand_attempts_whatever_the_number_of_days(
    connection: Connection,
) -> None:
    """So a statement_timeout that one call meets does not stop the next one at the same place."""
    add_attempts(connection, FIRST, 5_999)
    add_attempts(connection, SECOND_DAY, 5_999)
    before = count(connection, "attempt")

    done = maintain(connection)

    assert done == [f"left the attempts of {SECOND_DAY} for the next call", f"dropped {FIRST}"]
    assert count(connection, "attempt") == before - 10_000
    assert maintain(connection) == [f"dropped {SECOND_DAY}"]
    assert count(connection, "attempt") == 0


def test_who_is_killed_in_the_middle_loses_one_step_and_no_more(
    connection: Connection, session: Session
) -> None:
    add_attempts(connection, FIRST, 14_999)
    assert maintain(connection) == [f"left the attempts of {FIRST} for the next call"]
    left = count(connection, "attempt")
    killed = session()
    killed.execute("begin")
    assert maintain(killed) == [f"dropped {FIRST}", f"dropped {SECOND_DAY}"]

    connection.execute("select pg_terminate_backend(%s, 5000)", [pid(killed)])

    with pytest.raises(psycopg.OperationalError):
        killed.execute("commit")
    assert count(connection, "attempt") == left
    assert count(connection, "job_history") == 6
    assert maintain(connection) == [f"dropped {FIRST}", f"dropped {SECOND_DAY}"]


def test_of_three_at_once_one_works_and_the_others_do_not_wait(
    connection: Connection, session: Session
) -> None:
    connection.execute("begin")
    assert len(maintain(connection)) == 2

    for _ in range(2):
        assert maintain(session()) == ["left everything to another call at work"]

    connection.execute("commit")
    assert maintain(session()) == []


def test_getting_and_keeping_jobs_waits_for_nothing_while_partitions_go(
    connection: Connection, session: Session
) -> None:
    live = session()
    leases = [leased(live, lease_for=10 * MINUTE) for _ in range(2)]
    connection.execute("begin")
    assert len(maintain(connection)) == 2

    enqueued(live)
    assert len(call(live, "enqueue_many", Jsonb([{"queue": "q", "kind": "work"}] * 10))) == 10
    assert len(call(live, "claim", ["q"], "ada", 5)) == 5
    assert verdict(live, "update_owned", leases[0], progress=Jsonb(1)) == "ok"
    assert verdict(live, "seal", leases[0]) == "ok"
    [renewal] = call(live, "renew", "ada", [leases[1].job_id], [leases[1].token])
    assert renewal.outcome == "renewed"
    call(live, "guard", *owner(leases[1]))

    connection.execute("commit")


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("complete", {}),
        ("fail", {"error_type": "Broken"}),
        ("release", {"started": True}),
    ],
)
def test_the_end_of_a_lease_waits_until_a_call_commits_and_no_longer(
    connection: Connection, session: Session, watcher: Connection, verb: str, options: Any
) -> None:
    ending = session()
    lease = leased(ending, lease_for=10 * MINUTE)
    connection.execute("begin")
    assert len(maintain(connection)) == 2

    late = started(lambda: verdict(ending, verb, lease, **options))
    wait_until_blocked(watcher, ending, by=connection)
    connection.execute("commit")

    assert late.result(LONGEST_WAIT) == "ok"


def verdict(connection: Connection, verb: str, lease: Any, **options: Any) -> str:
    return str(one(connection, verb, *owner(lease), **options).verdict)
