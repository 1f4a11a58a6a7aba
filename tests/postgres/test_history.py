"""Finished jobs: the partitions they go to, and how those come and go beside readers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tenure.migrate import upgrade
from tests.postgres.races import (
    LONGEST_WAIT,
    Connection,
    call,
    enqueued,
    job,
    leased,
    one,
    owner,
    started,
    wait_until_blocked,
)

Session = Callable[[], Connection]

DAY = timedelta(days=1)
NOON = datetime(2031, 1, 1, 12, tzinfo=UTC)
"""Far after the days for which the template has partitions."""

LONG_AGO = datetime(2021, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def connection(session: Session) -> Connection:
    connection = session()
    stand_at(connection, NOON)
    return connection


@pytest.fixture
def maintainer(session: Session) -> Connection:
    return session()


@pytest.fixture
def reader(session: Session) -> Connection:
    """A session that may keep the history open; a snapshot of it, as a report takes one."""
    return session()


def stand_at(connection: Connection, instant: datetime) -> None:
    connection.execute("update tenure.test_clock set at = %s", [instant])


def read_on(reader: Connection) -> None:
    """Begin to read the whole history, and do not come to an end."""
    reader.execute("begin isolation level repeatable read; select from tenure.job_history")


def maintain(connection: Connection) -> list[str]:
    return [line for (line,) in call(connection, "maintain")]


def partition_name(day: datetime) -> str:
    return f"job_history_{day:%Y%m%d}"


def partitions(connection: Connection, schema: str = "tenure") -> list[str]:
    rows = connection.execute(
        """
        select c.relname
          from pg_inherits as i
          join pg_class as c on c.oid = i.inhrelid
         where i.inhparent = (%s || '.job_history')::regclass
         order by 1
        """,
        [schema],
    ).fetchall()
    return [name for (name,) in rows]


def place(connection: Connection, job_id: int) -> str:
    """The partition that has a finished job."""
    [(name,)] = connection.execute(
        """
        select c.relname
          from tenure.job_history as h
          join pg_class as c on c.oid = h.tableoid
         where h.id = %s
        """,
        [job_id],
    ).fetchall()
    return str(name)


def completed(connection: Connection) -> Any:
    """The lease of a job that was just completed."""
    lease = leased(connection)
    assert one(connection, "complete", *owner(lease)).verdict == "ok"
    return lease


def failed(connection: Connection) -> Any:
    """The lease of a job that failed for good: it has an attempt row."""
    lease = leased(connection)
    assert one(connection, "fail", *owner(lease), "Broken", retryable=False).status == "failed"
    return lease


def fill(connection: Connection, day: datetime, jobs: int) -> None:
    """Put finished jobs of a day where they go when the day has no partition."""
    connection.execute(
        """
        insert into tenure.job_history
               (id, finished_at, token, token_limit, created_at, attempt, max_attempts, status,
                priority, queue, kind)
        select nextval('tenure.job_id_seq'), %(day)s, 1, 150, %(day)s, 1, 5, 'completed', 5, 'q',
               'work'
          from generate_series(1, %(jobs)s)
        """,
        {"day": day, "jobs": jobs},
    )


def count(connection: Connection, relation: str) -> int:
    [(rows,)] = connection.execute(f"select count(*) from tenure.{relation}".encode()).fetchall()
    return int(rows)


def test_partitions_are_made_for_today_and_the_coming_week(connection: Connection) -> None:
    week = [partition_name(NOON + n * DAY) for n in range(8)]

    lines = maintain(connection)

    assert [line for line in lines if line.startswith("made")] == [f"made {name}" for name in week]
    assert partitions(connection) == [*week, "job_history_default"]
    assert maintain(connection) == []
    stand_at(connection, NOON + DAY)
    assert maintain(connection) == [f"made {partition_name(NOON + 8 * DAY)}"]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/St_Johns", "Pacific/Apia"])
@pytest.mark.parametrize("style", ["ISO, MDY", "SQL, DMY", "German"])
def test_a_partition_is_a_day_in_utc_whatever_the_caller_set(
    connection: Connection, zone: str, style: str
) -> None:
    connection.execute(f"set timezone = '{zone}'; set datestyle = '{style}'")
    maintain(connection)
    connection.execute("reset timezone; reset datestyle")

    for finished_at, day in (
        (NOON.replace(hour=0), NOON),
        (NOON.replace(hour=23, minute=59, second=59, microsecond=999999), NOON),
        (NOON.replace(hour=0) + DAY, NOON + DAY),
    ):
        stand_at(connection, finished_at)
        assert place(connection, completed(connection).job_id) == partition_name(day)


def test_a_completion_needs_no_partition(connection: Connection) -> None:
    lease = completed(connection)

    assert place(connection, lease.job_id) == "job_history_default"
    assert one(connection, "complete", *owner(lease)).verdict == "already"


def test_a_day_that_began_without_a_partition_gets_its_rows_moved(connection: Connection) -> None:
    leases = [completed(connection), failed(connection)]
    maintain(connection)

    assert {place(connection, lease.job_id) for lease in leases} == {partition_name(NOON)}
    assert count(connection, "job_history_default") == 0
    assert one(connection, "complete", *owner(leases[0])).verdict == "already"
    assert one(connection, "retry", leases[1].job_id).verdict == "ok"


def test_a_completion_never_fails_for_a_partition_that_is_just_being_attached(
    connection: Connection, maintainer: Connection, watcher: Connection
) -> None:
    """Not even when it had chosen the default partition before."""
    # No partition is so old that it would be dropped, under a lock that hides this one.
    stand_at(connection, LONG_AGO)
    lease = leased(connection)
    maintainer.execute("begin")
    made = [f"made {partition_name(LONG_AGO + n * DAY)}" for n in range(8)]
    assert maintain(maintainer) == made

    completing = started(lambda: one(connection, "complete", *owner(lease)))
    wait_until_blocked(watcher, connection, by=maintainer)
    maintainer.execute("commit")

    assert completing.result(LONGEST_WAIT).verdict == "ok"
    assert place(connection, lease.job_id) == partition_name(LONG_AGO)


def test_a_job_that_ends_while_its_partition_is_to_be_attached_is_moved_too(
    connection: Connection, maintainer: Connection, watcher: Connection
) -> None:
    # Long enough to be seen waiting.
    connection.execute("alter function tenure.maintain() set lock_timeout = '5s'")
    connection.execute("begin")
    lease = completed(connection)

    attaching = started(lambda: maintain(maintainer))
    wait_until_blocked(watcher, maintainer, by=connection)
    connection.execute("commit")

    assert f"made {partition_name(NOON)}" in attaching.result(LONGEST_WAIT)
    assert place(connection, lease.job_id) == partition_name(NOON)


def test_at_most_ten_thousand_rows_are_moved_and_more_of_them_stay(connection: Connection) -> None:
    fill(connection, NOON, 10_000)
    fill(connection, NOON + DAY, 10_001)

    lines = maintain(connection)

    assert f"made {partition_name(NOON)}" in lines
    assert count(connection, partition_name(NOON)) == 10_000
    assert partition_name(NOON + DAY) not in partitions(connection)
    assert count(connection, "job_history_default") == 10_001
    stand_at(connection, NOON + DAY)
    assert place(connection, completed(connection).job_id) == "job_history_default"


@pytest.mark.parametrize("other", [-1 * DAY, 30 * DAY], ids=["earlier", "later"])
def test_rows_of_another_day_do_not_keep_a_day_from_its_partition(
    connection: Connection, other: timedelta
) -> None:
    fill(connection, NOON + other, 10_001)

    assert f"made {partition_name(NOON)}" in maintain(connection)

    assert count(connection, "job_history_default") == 10_001


def test_a_partition_is_not_attached_beside_a_reader_and_is_at_the_next_call(
    connection: Connection, reader: Connection
) -> None:
    before = partitions(connection)
    read_on(reader)

    lines = maintain(connection)

    left = [f"left the partition of {NOON + n * DAY:%Y-%m-%d} for the next call" for n in range(8)]
    assert lines[:8] == left
    assert partitions(connection) == before
    assert place(connection, completed(connection).job_id) == "job_history_default"
    reader.execute("commit")
    assert [line for line in maintain(connection) if line.startswith("made")] == [
        f"made {partition_name(NOON + n * DAY)}" for n in range(8)
    ]


def test_a_partition_is_dropped_after_thirty_days_with_the_attempts_of_its_jobs(
    connection: Connection,
) -> None:
    maintain(connection)
    old = failed(connection)
    stand_at(connection, NOON + DAY)
    young = failed(connection)

    stand_at(connection, NOON + 30 * DAY)
    maintain(connection)
    assert place(connection, old.job_id) == partition_name(NOON)

    stand_at(connection, NOON + 31 * DAY)
    assert f"dropped {partition_name(NOON)}" in maintain(connection)
    with pytest.raises(psycopg.Error) as unknown:
        one(connection, "retry", old.job_id)
    assert unknown.value.sqlstate == "TN004"
    assert place(connection, young.job_id) == partition_name(NOON + DAY)
    attempts = connection.execute("select job_id, outcome from tenure.attempts").fetchall()
    assert attempts == [(young.job_id, "failed")]
    assert one(connection, "fail", *owner(old), "Broken").verdict == "lost"


def test_the_partitions_of_another_install_are_left_alone(connection: Connection, dsn: str) -> None:
    upgrade(dsn, schema="another")
    theirs = partitions(connection, "another")

    lines = maintain(connection)

    assert [line for line in lines if line.startswith("dropped")]
    assert len(set(lines)) == len(lines)
    assert partitions(connection, "another") == theirs


def test_attempts_are_deleted_ten_thousand_at_a_call_before_their_partition_goes(
    connection: Connection,
) -> None:
    maintain(connection)
    lease = failed(connection)
    connection.execute(
        """
        insert into tenure.attempt
               (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome)
        select %s, n, now(), now(), 1, 'ada', 'sweep', 'lost' from generate_series(2, 10001) as n
        """,
        [lease.job_id],
    )
    stand_at(connection, NOON + 31 * DAY)

    assert f"dropped {partition_name(NOON)}" not in maintain(connection)
    assert count(connection, "attempt") == 1
    assert place(connection, lease.job_id) == partition_name(NOON)
    assert f"dropped {partition_name(NOON)}" in maintain(connection)
    assert count(connection, "attempt") == 0


@pytest.fixture
def aged(connection: Connection) -> Any:
    """The lease of a completed job whose partition a call of maintain() would drop, no more."""
    stand_at(connection, NOON + 31 * DAY)
    maintain(connection)
    stand_at(connection, NOON)
    maintain(connection)
    lease = completed(connection)
    assert place(connection, lease.job_id) == partition_name(NOON)
    stand_at(connection, NOON + 31 * DAY)
    return lease


def test_a_partition_is_not_dropped_beside_a_reader_and_is_at_the_next_call(
    connection: Connection, reader: Connection, aged: Any
) -> None:
    read_on(reader)

    assert maintain(connection) == [f"left {partition_name(NOON)} for the next call"]

    # Completions go on beside the reader, and find what was not dropped.
    assert one(connection, "complete", *owner(aged)).verdict == "already"
    assert one(connection, "complete", *owner(completed(connection))).verdict == "already"
    reader.execute("commit")
    assert maintain(connection) == [f"dropped {partition_name(NOON)}"]
    assert one(connection, "complete", *owner(aged)).verdict == "lost"


def test_a_completion_behind_a_drop_goes_on_when_the_drop_gives_up(
    connection: Connection,
    maintainer: Connection,
    reader: Connection,
    watcher: Connection,
    aged: Any,
) -> None:
    # Long enough to be seen waiting.
    connection.execute("alter function tenure.maintain() set lock_timeout = '1s'")
    lease = leased(connection)
    read_on(reader)

    dropping = started(lambda: maintain(maintainer))
    wait_until_blocked(watcher, maintainer, by=reader)
    completing = started(lambda: one(connection, "complete", *owner(lease)))
    wait_until_blocked(watcher, connection, by=maintainer)

    # Answered while the reader reads on.
    assert completing.result(LONGEST_WAIT).verdict == "ok"
    assert dropping.result(LONGEST_WAIT) == [f"left {partition_name(NOON)} for the next call"]
    assert one(connection, "complete", *owner(lease)).verdict == "already"
    reader.execute("rollback")


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_of_two_calls_at_once_one_does_it_all(
    connection: Connection, maintainer: Connection, watcher: Connection, aged: Any, end: str
) -> None:
    connection.execute("alter function tenure.maintain() set lock_timeout = '5s'")
    stand_at(connection, NOON + 32 * DAY)
    todo = [f"made {partition_name(NOON + 39 * DAY)}"] + [
        f"dropped {partition_name(NOON + n * DAY)}" for n in range(2)
    ]
    connection.execute("begin")
    assert maintain(connection) == todo

    second = started(lambda: maintain(maintainer))
    wait_until_blocked(watcher, maintainer, by=connection)
    connection.execute(end)

    assert second.result(LONGEST_WAIT) == ([] if end == "commit" else todo)


def test_a_call_does_not_wait_for_another_one(
    connection: Connection, maintainer: Connection
) -> None:
    connection.execute("begin")
    assert maintain(connection) != []

    assert maintain(maintainer) == ["left everything to another call at work"]
    connection.execute("commit")


def test_a_worker_not_seen_for_a_day_is_forgotten(connection: Connection) -> None:
    call(connection, "worker_seen", "ada", ["q"])
    stand_at(connection, NOON + DAY)
    call(connection, "worker_seen", "bob", ["q"])
    maintain(connection)
    assert count(connection, "workers") == 2

    stand_at(connection, NOON + DAY + timedelta(microseconds=1))
    maintain(connection)
    rows = connection.execute("select worker_id from tenure.workers").fetchall()
    assert rows == [("bob",)]


def test_jobs_that_ended_on_different_days_are_all_answered_for(connection: Connection) -> None:
    maintain(connection)
    leases = []
    for n in range(10):
        stand_at(connection, NOON + n * DAY)
        leases.append(completed(connection))

    assert {place(connection, lease.job_id) for lease in leases} == {
        *(partition_name(NOON + n * DAY) for n in range(8)),
        "job_history_default",
    }
    for lease in leases:
        assert one(connection, "complete", *owner(lease)).verdict == "already"
        assert one(connection, "cancel", lease.job_id).verdict == "refused"
        assert job(connection, lease.job_id).status == "completed"
    assert enqueued(connection) > leases[-1].job_id
