"""Whom an operator is told to look at when a job's row is held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.postgres.races import (
    LONGEST_WAIT,
    Connection,
    call,
    connected,
    leased,
    one,
    owner,
    pid,
    started,
    wait_until_blocked,
)

Session = Callable[[], Connection]


def test_no_session_is_named_when_either_of_two_may_hold_the_job(session: Session) -> None:
    handler, other, operator = session(), session(), session()
    lease, beside = leased(operator), leased(operator, "bob")
    for connection, its in ((handler, lease), (other, beside)):
        connection.execute("begin")
        call(connection, "guard", *owner(its))

    answer = one(operator, "cancel", lease.job_id)

    assert (answer.verdict, answer.holder_pid) == ("deferred", None)


def lock(connection: Connection, lease: Any) -> None:
    """Hold a row as another application's statement does, in no subtransaction."""
    connection.execute("begin")
    connection.execute("select from tenure.job where id = %s for update", [lease.job_id])


def test_of_two_who_hold_a_job_each_its_own_is_named(session: Session) -> None:
    first, second, operator = session(), session(), session()
    lease, beside = leased(operator), leased(operator, "bob")
    lock(first, lease)
    lock(second, beside)

    assert one(operator, "holder_pid", lease.job_id) == (pid(first),)
    assert one(operator, "holder_pid", beside.job_id) == (pid(second),)


@pytest.mark.parametrize("holds", [0, 1])
def test_one_who_waits_for_the_holder_is_not_named(session: Session, holds: int) -> None:
    sessions, operator = [session(), session()], session()
    holder, waiter = sessions[holds], sessions[1 - holds]
    lease = leased(operator)
    lock(holder, lease)
    waiting = started(lambda: lock(waiter, lease))
    wait_until_blocked(operator, waiter, by=holder)

    assert one(operator, "holder_pid", lease.job_id) == (pid(holder),)

    holder.execute("rollback")
    waiting.result(LONGEST_WAIT)


def test_a_guard_is_found_beside_all_who_have_no_row_of_a_job_locked_here(
    session: Session, fresh_dsn: str
) -> None:
    """The job table of a database made from the same template has the same oid."""
    handler, reader, writer, operator = session(), session(), session(), session()
    lease = leased(operator)
    reader.execute("begin; select count(*) from tenure.job")
    writer.execute("begin; insert into tenure.queue (queue) values ('another')")
    with connected(fresh_dsn) as elsewhere:
        far = leased(elsewhere)
        for connection, its in ((elsewhere, far), (handler, lease)):
            connection.execute("begin")
            call(connection, "guard", *owner(its))
        operator.execute("begin; select from tenure.job for no key update skip locked")

        assert one(operator, "holder_pid", lease.job_id) == (pid(handler),)
