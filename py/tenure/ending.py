"""How a lease is brought to its end by what a handler came to."""

from __future__ import annotations

from datetime import timedelta

import psycopg

from tenure.errors import InvalidArgument
from tenure.owner import Owner
from tenure.values import Failure, JobLease, Outcome, Settled, Verb, Verdict

NOT_STORABLE = (InvalidArgument, psycopg.DataError, psycopg.errors.ProgramLimitExceeded)
"""The value itself is refused; trying again would change nothing."""


def not_storable(lease: JobLease, what: str, error: BaseException) -> Outcome:
    """The end of a job whose outcome can never be written: it fails, and is not tried again."""
    return Outcome(
        job_id=lease.job_id,
        token=lease.token,
        verb=Verb.FAIL,
        failure=Failure(error_type=f"{what} not storable", message=str(error), retryable=False),
    )


def not_started(lease: JobLease) -> Outcome:
    """The job is given back, and its attempt is refunded."""
    return Outcome(job_id=lease.job_id, token=lease.token, verb=Verb.RELEASE, started=False)


def follow_up(outcome: Outcome, verdict: Verdict) -> Outcome | None:
    """What is to be written after this answer; None when nothing is."""
    if verdict is Verdict.CANCEL_REQUESTED:
        return Outcome(job_id=outcome.job_id, token=outcome.token, verb=Verb.ACKNOWLEDGE_CANCEL)
    if verdict is Verdict.SEALED:
        # A sealed job answers every other verb so: only completing ends it.
        return Outcome(job_id=outcome.job_id, token=outcome.token, verb=Verb.COMPLETE)
    return None


def write(owner: Owner, worker_id: str, outcome: Outcome) -> Settled:
    """End the lease by a call of its verb alone."""
    job_id, token = outcome.job_id, outcome.token
    if outcome.verb is Verb.COMPLETE:
        return owner.complete(job_id, worker_id, token, outcome.result)
    if outcome.verb is Verb.FAIL:
        assert outcome.failure is not None
        return owner.fail(job_id, worker_id, token, outcome.failure, delay=outcome.delay)
    if outcome.verb is Verb.RELEASE:
        return owner.release(
            job_id,
            worker_id,
            token,
            started=outcome.started,
            delay=outcome.delay or timedelta(0),
        )
    return owner.acknowledge_cancel(job_id, worker_id, token)
