"""Two operators who retry one job."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.postgres.races import (
    LONGEST_WAIT,
    Connection,
    call,
    job,
    leased,
    one,
    owner,
    started,
    wait_until_blocked,
)

Session = Callable[[], Connection]


@pytest.mark.parametrize(("end", "verdict"), [("commit", "refused"), ("rollback", "ok")])
def test_the_second_of_two_retries_waits_for_the_first(
    session: Session, watcher: Connection, end: str, verdict: str
) -> None:
    first, second = session(), session()
    lease = leased(first)
    leased(first, "bob")  # whose state is no answer
    call(first, "fail", *owner(lease), "Broken", retryable=False)

    first.execute("begin")
    assert one(first, "retry", lease.job_id).verdict == "ok"
    waiting = started(lambda: one(second, "retry", lease.job_id))
    wait_until_blocked(watcher, second, by=first)
    first.execute(end)

    answer = waiting.result(LONGEST_WAIT)
    assert (answer.verdict, answer.status) == (verdict, "queued")
    assert job(first, lease.job_id).max_attempts == 2
