"""Whom an operator is told to look at when a job's row is held."""

from __future__ import annotations

from collections.abc import Callable

from tests.postgres.races import Connection, call, leased, one, owner

Session = Callable[[], Connection]


def test_no_session_is_named_when_either_of_two_may_hold_the_job(session: Session) -> None:
    handler, other, operator = session(), session(), session()
    lease, beside = leased(operator), leased(operator, "bob")
    for connection, its in ((handler, lease), (other, beside)):
        connection.execute("begin")
        call(connection, "guard", *owner(its))

    answer = one(operator, "cancel", lease.job_id)

    assert (answer.verdict, answer.holder_pid) == ("deferred", None)
