"""Whom a floor waits for while some transaction holds every snapshot back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.postgres.floors import claimed, floor, meet, microseconds, press
from tests.postgres.races import (
    LONGEST_WAIT,
    Connection,
    SteppedClock,
    connected,
    enqueued,
    started,
    wait_until_blocked,
)

Session = Callable[[], Connection]

WROTE = "begin; insert into application values (1)"


@pytest.fixture
def claimer(session: Session, clock: SteppedClock) -> Connection:
    claimer = session()
    claimer.execute("create table application (key integer primary key)")
    meet(claimer)
    press(claimer, clock)
    return claimer


@pytest.fixture
def held_back(session: Session, claimer: Connection) -> Connection:
    """A transaction that has written elsewhere, and is older than every horizon to come."""
    old = session()
    old.execute(WROTE)
    return old


def test_a_younger_writer_that_waits_for_the_old_transaction_is_not_taken_for_an_old_one(
    session: Session,
    watcher: Connection,
    claimer: Connection,
    held_back: Connection,
    clock: SteppedClock,
) -> None:
    press(claimer, clock)
    writer = session()
    before = microseconds(clock)
    press(claimer, clock, 1)
    writer.execute("begin")
    enqueued(writer, "another queue")
    waiting = started(lambda: writer.execute("insert into application values (1)"))
    wait_until_blocked(watcher, writer, by=held_back)

    press(claimer, clock, 1)

    assert floor(claimer) > before
    held_back.execute("rollback")
    waiting.result(LONGEST_WAIT)


def test_an_old_transaction_that_only_reads_jobs_is_not_waited_for(
    claimer: Connection, held_back: Connection, clock: SteppedClock
) -> None:
    held_back.execute("select count(*) from tenure.job")
    before = microseconds(clock)
    press(claimer, clock)
    assert floor(claimer) > before


def test_an_old_writer_of_jobs_in_another_database_is_not_waited_for(
    claimer: Connection, held_back: Connection, clock: SteppedClock, fresh_dsn: str
) -> None:
    """The job table of a database made from the same template has the same oid."""
    with connected(fresh_dsn) as elsewhere:
        elsewhere.execute("begin")
        enqueued(elsewhere)
        before = microseconds(clock)
        press(claimer, clock)
        assert floor(claimer) > before


def test_an_old_writer_of_jobs_is_waited_for(
    session: Session, claimer: Connection, held_back: Connection, clock: SteppedClock
) -> None:
    writer = session()
    writer.execute("begin")
    job_id = enqueued(writer)
    press(claimer, clock, 4)
    writer.execute("commit")
    assert claimed(claimer) == [job_id]
