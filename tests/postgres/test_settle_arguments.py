"""What settle is given for a verb that has no use for it says nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.postgres.races import Connection, call, job, leased, one

Session = Callable[[], Connection]

LAST = "update tenure.job set token_limit = 1 where id = %s"
"""The lease that the job has is the last one that may be given back."""


@pytest.fixture
def worker(session: Session) -> Connection:
    return session()


def settled(worker: Connection, lease: Any, verb: str, **arrays: Any) -> Any:
    """Settle one lease with whatever arrays; the job afterwards."""
    answer = one(worker, "settle", lease.worker_id, [lease.job_id], [lease.token], [verb], **arrays)
    assert answer.verdict == "ok"
    return job(worker, lease.job_id)


@pytest.mark.parametrize("error", [{"cancel": True}, {"retryable": False}])
def test_an_error_of_a_release_does_not_end_the_job(worker: Connection, error: Any) -> None:
    released = settled(worker, leased(worker), "release", errors=[Jsonb(error)])
    assert (released.status, released.last_error) == ("queued", None)


def test_an_error_of_a_release_is_not_noted(worker: Connection) -> None:
    lease = leased(worker)
    settled(worker, lease, "release", errors=[Jsonb({"message": "broken"})])
    noted = worker.execute(
        "select a.outcome, a.message from tenure.attempt as a where a.job_id = %s", [lease.job_id]
    ).fetchall()
    assert noted == [("released", None)]


def test_an_error_of_a_completion_is_not_noted(worker: Connection) -> None:
    error = Jsonb({"error_type": "ValueError", "message": "broken", "cancel": True})
    completed = settled(worker, leased(worker), "complete", errors=[error])
    assert (completed.status, completed.last_error) == ("completed", None)


def test_a_result_of_a_failure_is_not_kept(worker: Connection) -> None:
    failed = settled(
        worker,
        leased(worker),
        "fail",
        results=[Jsonb({"given": True})],
        errors=[Jsonb({"message": "broken", "retryable": False})],
    )
    assert (failed.status, failed.result) == ("failed", None)


def test_a_failure_is_tried_again_beyond_the_limit_of_giving_back(worker: Connection) -> None:
    lease = leased(worker)
    worker.execute(LAST, [lease.job_id])
    failed = settled(worker, lease, "fail", errors=[Jsonb({"message": "broken"})])
    assert failed.status == "queued"


def test_a_cancelled_job_is_not_said_to_be_given_back_too_often(worker: Connection) -> None:
    lease = leased(worker)
    worker.execute(LAST, [lease.job_id])
    call(worker, "cancel", lease.job_id)
    cancelled = settled(worker, lease, "release")
    assert (cancelled.status, cancelled.last_error) == ("cancelled", None)
