"""A large batch goes in parts, and is all or none all the same."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tenure import InvalidArgument, NewJob, ServerUnavailable, Tenure, pipelined
from tenure.backing_postgres import PostgresBacking, PostgresPlane
from tests.postgres.races import wait_until
from tests.runner.waiting import PATIENCE

Connection = psycopg.Connection[Any]


@pytest.fixture
def other(dsn: str) -> Iterator[Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def plane(postgres_app: Tenure, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresPlane]:
    monkeypatch.setattr(pipelined, "PART", 10)
    backing = PostgresBacking(postgres_app.store)  # type: ignore[arg-type]
    plane = backing.open()
    yield plane
    plane.close()


def jobs(count: int) -> list[NewJob]:
    return [NewJob(kind="work", payload=n) for n in range(count)]


def counted(connection: Connection, what: str = "*") -> int:
    row = connection.execute(f"select count({what}) from tenure.job".encode()).fetchone()
    assert row is not None
    return int(row[0])


def test_the_parts_are_one_transaction_and_keep_the_order(
    plane: PostgresPlane, other: Connection
) -> None:
    added = plane.enqueue_many(jobs(35))

    assert len(added) == counted(other) == 35
    assert counted(other, "distinct xmin::text") == 1
    assert counted(other, "distinct created_at") == 4  # a statement each
    assert [lease.payload for lease in plane.claim(["default"], "ada", max_jobs=35)] == list(
        range(35)
    )
    assert [one.job_id for one in added] == sorted(one.job_id for one in added)
    assert all(one.created for one in added)


def test_what_may_not_be_stored_is_named_by_its_place_in_the_whole_and_nothing_is_written(
    plane: PostgresPlane, other: Connection
) -> None:
    batch = jobs(35)
    batch[27] = NewJob(kind="work", payload={"a": [object()]})

    with pytest.raises(InvalidArgument, match=r"jobs\[27\]\.payload\.a\[0\]: object is not JSON"):
        plane.enqueue_many(batch)

    assert counted(other) == 0
    assert len(plane.enqueue_many(jobs(11))) == 11


def test_what_the_server_refuses_in_a_later_part_undoes_the_earlier_ones(
    plane: PostgresPlane, other: Connection
) -> None:
    other.execute(
        """
        create function pg_temp_refuse() returns trigger language plpgsql as $$
        begin
          raise exception using errcode = '22023', message = 'nobody wants 27', hint = 'Use 28.';
        end $$;
        create trigger refuse before insert on tenure.job for each row
          when (new.payload = '27') execute function pg_temp_refuse();
        """
    )

    with pytest.raises(InvalidArgument, match="nobody wants 27"):
        plane.enqueue_many(jobs(35))

    assert counted(other) == 0
    assert len(plane.enqueue_many(jobs(27))) == counted(other) == 27


def test_a_session_that_is_ended_on_the_way_leaves_nothing(
    plane: PostgresPlane, other: Connection, dsn: str
) -> None:
    pid = plane.connection.info.backend_pid
    with psycopg.connect(dsn) as locker, ThreadPoolExecutor(1) as thread:
        locker.execute("lock table tenure.job in exclusive mode")
        call = thread.submit(plane.enqueue_many, jobs(35))
        wait_until(
            "it waits for the lock",
            lambda: bool(other.execute("select pg_blocking_pids(%s)", [pid]).fetchall()[0][0]),
        )
        other.execute("select pg_terminate_backend(%s, 5000)", [pid])
        assert isinstance(call.exception(PATIENCE), ServerUnavailable)

    assert counted(other) == 0


def test_a_batch_with_a_key_is_one_statement_that_takes_its_keys_in_order(
    plane: PostgresPlane, other: Connection
) -> None:
    batch = [*jobs(34), NewJob(kind="work", dedup_key="once")]

    assert not pipelined.is_worth_it(batch)
    assert len(plane.enqueue_many(batch)) == 35
    assert counted(other, "distinct created_at") == 1


@pytest.mark.parametrize("batch", [[], None, 7, "work", [NewJob(kind="work")] * 11 + ["work"]])
def test_what_is_no_batch_is_refused(plane: PostgresPlane, other: Connection, batch: Any) -> None:
    with pytest.raises(InvalidArgument):
        plane.enqueue_many(batch)

    assert counted(other) == 0
