"""Arranges races between sessions: who waits for whom, and what time it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import namedtuple_row

Connection = psycopg.Connection[Any]
T = TypeVar("T")

MILLISECOND = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)

LONGEST_WAIT = 10
"""Seconds after which a statement that should never have waited fails its test."""

GATE = 7


@contextmanager
def connected(dsn: str, **options: Any) -> Iterator[Connection]:
    """A session in autocommit; its own transactions begin and end in plain SQL."""
    connection = psycopg.connect(
        dsn,
        autocommit=True,
        row_factory=namedtuple_row,
        options=f"-c statement_timeout={LONGEST_WAIT}s",
        **options,
    )
    with closing(connection):
        yield connection


def call(connection: Connection, function: str, /, *args: Any, **named: Any) -> list[Any]:
    """The rows with which a function of tenure answers."""
    places = [sql.Placeholder() for _ in args]
    names = [sql.SQL("p_{} => {}").format(sql.SQL(n), sql.Placeholder()) for n in named]
    query = sql.SQL("select * from tenure.{}({})").format(
        sql.Identifier(function), sql.SQL(", ").join([*places, *names])
    )
    return connection.execute(query, [*args, *named.values()]).fetchall()


def one(connection: Connection, function: str, /, *args: Any, **named: Any) -> Any:
    """The single row with which a function of tenure answers, or None."""
    rows = call(connection, function, *args, **named)
    assert len(rows) <= 1
    return rows[0] if rows else None


def enqueued(connection: Connection, queue: str = "q", **options: Any) -> int:
    """The id of a new job."""
    job_id = one(connection, "enqueue", queue, "work", **options).job_id
    assert isinstance(job_id, int)
    return job_id


def leased(connection: Connection, worker_id: str = "ada", queue: str = "q", **options: Any) -> Any:
    """The lease of one new job, unbuffered."""
    lease_for = options.pop("lease_for", 30 * SECOND)
    job_id = enqueued(connection, queue, **options)
    lease = one(connection, "claim_job", job_id, worker_id, lease_for)
    assert lease is not None
    return lease


def owner(lease: Any) -> tuple[int, str, int]:
    """What a worker shows for its lease."""
    return lease.job_id, lease.worker_id, lease.token


def job(connection: Connection, job_id: int) -> Any:
    """A job as people see it, live or finished."""
    return connection.execute("select * from tenure.jobs where job_id = %s", [job_id]).fetchone()


def started(run: Callable[[], T]) -> Future[T]:
    """Run something that may have to wait, on a thread of its own."""
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(run())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return future


def pid(connection: Connection) -> int:
    return connection.info.backend_pid


def is_blocked(watcher: Connection, waiting: Connection, by: Connection) -> bool:
    row = watcher.execute(
        "select %s = any (pg_blocking_pids(%s))", [pid(by), pid(waiting)]
    ).fetchone()
    return row == (True,)


def wait_until_blocked(watcher: Connection, waiting: Connection, *, by: Connection) -> None:
    """Return once one session is seen to wait for another; fail when it never does."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if is_blocked(watcher, waiting, by):
            return
        time.sleep(0.002)
    pytest.fail("the second session never had to wait for the first")


def wait_until(what: str, holds: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"it never came about that {what}")
        time.sleep(0.002)


class SteppedClock:
    """The clock() of a test's database: stands still until it is moved, by no transaction.

    Kept in an unlogged sequence, so that moving it takes no xid: a test of horizons must not
    end transactions in passing. A session may be stopped before or after one of its readings.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        connection.execute(_CLOCK)

    @property
    def now(self) -> datetime:
        row = self._connection.execute("select tenure.clock()").fetchone()
        assert row is not None
        now = row[0]
        assert isinstance(now, datetime)
        return now

    def advance(self, by: timedelta) -> None:
        self._connection.execute(
            "select setval('tenure.test_time', last_value + %s) from tenure.test_time",
            [by // timedelta(microseconds=1)],
        )


class Gate:
    """Stops another session inside a function, at the moment when it reads the clock."""

    def __init__(self, keeper: Connection) -> None:
        self.keeper = keeper

    @contextmanager
    def closed(self, to: Connection, stop: str) -> Iterator[None]:
        """Hold a session up at a reading of the clock from now on: "before 2", "after 1"."""
        to.execute(
            """
            select set_config('tests.stop', %s, false) as stop,
                   set_config('tests.readings', '0', false) as readings
            """,
            [stop],
        )
        self.keeper.execute("select pg_advisory_lock(%s)", [GATE])
        try:
            yield
        finally:
            self.keeper.execute("select pg_advisory_unlock_all()")

    def stopped(self, watcher: Connection, session: Connection, run: Future[Any]) -> bool:
        """Wait until the session stands at the gate (true) or has come to its end (false)."""
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            if is_blocked(watcher, session, self.keeper):
                return True
            if run.done():
                return False
            time.sleep(0.001)
        pytest.fail("the session neither stopped at the gate nor went past it")


_CLOCK = """
create unlogged sequence tenure.test_time minvalue 0 start 1767225600000000;

create or replace function tenure.clock()
  returns timestamptz
  language plpgsql
  volatile
  security definer
  set search_path = tenure, pg_temp
as $$
declare
  v_stop    text := current_setting('tests.stop', true);
  v_reading integer;
  v_at      timestamptz;
begin
  if v_stop <> '' then
    v_reading := current_setting('tests.readings')::integer + 1;
    perform set_config('tests.readings', v_reading::text, false);
  end if;
  if v_stop = 'before ' || v_reading then
    perform pg_advisory_lock_shared(7), pg_advisory_unlock_shared(7);
  end if;
  select instant(t.last_value) into v_at from test_time as t;
  if v_stop = 'after ' || v_reading then
    perform pg_advisory_lock_shared(7), pg_advisory_unlock_shared(7);
  end if;
  return v_at;
end;
$$;
"""
