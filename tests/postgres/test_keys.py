"""A dedup key that two transactions want at once: who waits, and who has the job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

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
Make = Callable[[Connection], Any]

ENDS = pytest.mark.parametrize("end", ["commit", "rollback"])


@pytest.fixture
def first(session: Session) -> Connection:
    return session()


@pytest.fixture
def second(session: Session) -> Connection:
    return session()


@pytest.fixture
def failed(first: Connection) -> int:
    """A failed job with the key that everybody wants."""
    lease = leased(first, dedup_key="k")
    assert one(first, "fail", *owner(lease), "Broken", retryable=False).status == "failed"
    return int(lease.job_id)


def enqueue(connection: Connection) -> Any:
    return one(connection, "enqueue", "q", "work", dedup_key="k")


def enqueue_many(connection: Connection) -> Any:
    """The answer for the middle one of a batch that needs two keys more."""
    keys = ["l", "k", "j"]
    jobs = [{"queue": "q", "kind": "work", "dedup_key": key} for key in keys]
    return call(connection, "enqueue_many", Jsonb(jobs))[1]


MAKERS = pytest.mark.parametrize("make", [enqueue, enqueue_many])


def ids_of_key(connection: Connection) -> list[int]:
    rows = connection.execute("select id from tenure.job where dedup_key = 'k'").fetchall()
    return [job_id for (job_id,) in rows]


@ENDS
@MAKERS
@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_an_enqueue_waits_for_whoever_took_its_key_and_answers_truly(
    first: Connection, second: Connection, watcher: Connection, make: Make, level: str, end: str
) -> None:
    """O28: a success is never reported on the strength of a job that was rolled back."""
    first.execute("begin")
    taken = enqueue(first)
    second.execute(f"begin isolation level {level}; select 1".encode())

    asked = started(lambda: make(second))
    wait_until_blocked(watcher, second, by=first)
    first.execute(end)

    if end == "commit" and level != "read committed":
        with pytest.raises(psycopg.errors.SerializationFailure):
            asked.result(LONGEST_WAIT)
        second.execute("rollback")
        assert ids_of_key(watcher) == [taken.job_id]
        return
    answer = asked.result(LONGEST_WAIT)
    second.execute("commit")
    assert answer.created == (end == "rollback")
    assert ids_of_key(watcher) == [answer.job_id]
    assert (answer.job_id == taken.job_id) == (end == "commit")


@ENDS
@MAKERS
def test_an_enqueue_waits_for_the_end_of_the_job_that_has_its_key(
    first: Connection, second: Connection, watcher: Connection, make: Make, end: str
) -> None:
    lease = leased(first, dedup_key="k")
    first.execute("begin")
    assert one(first, "complete", *owner(lease)).verdict == "ok"

    asked = started(lambda: make(second))
    wait_until_blocked(watcher, second, by=first)
    first.execute(end)

    answer = asked.result(LONGEST_WAIT)
    assert answer.created == (end == "commit")
    assert ids_of_key(watcher) == [answer.job_id]
    assert (answer.job_id == lease.job_id) == (end == "rollback")


@ENDS
@MAKERS
def test_an_enqueue_waits_for_a_retry_that_takes_its_key(
    first: Connection, second: Connection, watcher: Connection, failed: int, make: Make, end: str
) -> None:
    """O29."""
    first.execute("begin")
    assert one(first, "retry", failed).verdict == "ok"

    asked = started(lambda: make(second))
    wait_until_blocked(watcher, second, by=first)
    first.execute(end)

    answer = asked.result(LONGEST_WAIT)
    assert answer.created == (end == "rollback")
    assert ids_of_key(watcher) == [answer.job_id]
    assert (answer.job_id == failed) == (end == "commit")


@ENDS
def test_a_retry_waits_for_whoever_takes_its_key(
    first: Connection, second: Connection, watcher: Connection, failed: int, end: str
) -> None:
    """O29: a conflict touches the one job, with an answer and without an error."""
    second.execute("begin")
    enqueue(second)

    asked = started(lambda: one(first, "retry", failed))
    wait_until_blocked(watcher, first, by=second)
    second.execute(end)

    answer = asked.result(LONGEST_WAIT)
    expected = ("duplicate", "failed") if end == "commit" else ("ok", "queued")
    assert (answer.verdict, answer.status) == expected
    assert job(first, failed).status == answer.status


def test_a_retry_gives_up_after_two_seconds_and_changes_nothing(
    first: Connection, second: Connection, failed: int
) -> None:
    second.execute("begin")
    enqueue(second)

    answer = one(first, "retry", failed)

    assert (answer.verdict, answer.status) == ("deferred", "failed")
    second.execute("rollback")
    assert job(first, failed).status == "failed"
    assert one(first, "retry", failed).verdict == "ok"


@ENDS
def test_of_two_retries_of_one_job_the_second_waits_and_one_counts(
    first: Connection, second: Connection, watcher: Connection, failed: int, end: str
) -> None:
    first.execute("begin")
    assert one(first, "retry", failed, 3).verdict == "ok"

    asked = started(lambda: one(second, "retry", failed, 4))
    wait_until_blocked(watcher, second, by=first)
    first.execute(end)

    answer = asked.result(LONGEST_WAIT)
    expected = ("refused", 1 + 3) if end == "commit" else ("ok", 1 + 4)
    assert (answer.verdict, job(first, failed).max_attempts) == expected
    assert answer.status == "queued"


def test_a_key_in_another_queue_is_another_key_and_nobody_waits(
    first: Connection, second: Connection
) -> None:
    first.execute("begin")
    enqueue(first)

    # It has an answer while the other transaction is open.
    assert enqueued(second, "other", dedup_key="k") in ids_of_key(second)
    first.execute("commit")
