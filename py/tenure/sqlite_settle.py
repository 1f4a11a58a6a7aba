"""Ends leases at the word of their owners."""

from __future__ import annotations

import random
import sqlite3
from typing import Any

from tenure.codec import cut_text
from tenure.limits import LAST_ERROR_BYTES, RETRY_BASE, RETRY_CAP
from tenure.sqlite_history import note_attempt, note_end
from tenure.sqlite_lease import OWNED
from tenure.sqlite_refusal import refused
from tenure.sqlite_transaction import Transaction
from tenure.sqlite_values import moment, optional_span, span
from tenure.values import Failure, JobStatus, Outcome, Settled, Verb, Verdict

# What the attempt row and the backoff are made from. Only values are read here; every test of
# what may be done is in the statement that does it.
LEASE_BEGUN = """
select token, worker_id, attempt, claimed_at, retry_base, retry_cap
  from tenure_job
 where id = :job_id
"""

SEAL = f"""
update tenure_job
   set sealed_at = :now,
       result = :result
 where {OWNED}
   and cancel_requested = 0
   and sealed_at is null
returning id
"""

# The test is here; what it let into the history then leaves, in the same transaction.
COMPLETE = f"""
insert into tenure_history
       (id, queue, kind, payload, priority, status, attempt, max_attempts, token, token_limit,
        worker_id, claimed_at, result, progress, retry_base, retry_cap, timeout, meta, dedup_key,
        created_at, finished_at, last_error)
select id, queue, kind, payload, priority, 'completed', attempt, max_attempts, token,
       token_limit, worker_id, claimed_at, iif(sealed_at is null, :result, result), progress,
       retry_base, retry_cap, timeout, meta, dedup_key, created_at, :now, last_error
  from tenure_job
 where {OWNED}
   and cancel_requested = 0
returning id
"""

LEAVE = """
delete from tenure_job
 where id = :job_id
"""

FAIL_AND_QUEUE = f"""
update tenure_job
   set status = 'queued',
       next_attempt_at = :due,
       last_error = :last_error,
       solo = 0,
       buffered = 0,
       reclaimed = 0,
       worker_id = null,
       claimed_at = null,
       lease_expires_at = null
 where {OWNED}
   and sealed_at is null
   and cancel_requested = 0
   and attempt < max_attempts
returning next_attempt_at
"""

# An attempt is refunded when it was not started, which the new owner of a reclaimed lease knows
# only of a buffered one; such a job may have killed its first worker, so it goes on alone.
RELEASE_AND_QUEUE = f"""
update tenure_job
   set status = 'queued',
       next_attempt_at = :due,
       attempt = attempt - (not :started and (buffered or not reclaimed)),
       solo = not :started and (solo or (buffered and reclaimed)),
       buffered = 0,
       reclaimed = 0,
       worker_id = null,
       claimed_at = null,
       lease_expires_at = null
 where {OWNED}
   and sealed_at is null
   and cancel_requested = 0
   and token < token_limit
   and (attempt < max_attempts or (not :started and (buffered or not reclaimed)))
returning next_attempt_at
"""

END_UNSEALED = f"""
delete from tenure_job
 where {OWNED}
   and sealed_at is null
returning *
"""

END_CANCELLED = f"""
delete from tenure_job
 where {OWNED}
   and cancel_requested = 1
returning *
"""


def end(t: Transaction, worker_id: str, outcome: Outcome) -> Settled:
    """End one lease, or say why not."""
    owner: dict[str, Any] = {
        "job_id": outcome.job_id,
        "token": outcome.token,
        "worker_id": worker_id,
    }
    if outcome.verb is Verb.COMPLETE:
        settled = _complete(t, owner, outcome)
    else:
        lease = t.one(LEASE_BEGUN, job_id=outcome.job_id)
        settled = None if lease is None else _VERBS[outcome.verb](t, owner, lease, outcome)
    return settled or refused(t, outcome.verb, **owner)


def seal(t: Transaction, job_id: int, worker_id: str, token: int, result: str | None) -> Settled:
    owner: dict[str, Any] = {"job_id": job_id, "token": token, "worker_id": worker_id}
    if t.one(SEAL, **owner, result=result, now=t.now) is None:
        return refused(t, "seal", **owner)
    return _ok(owner, JobStatus.RUNNING)


def backoff(lease: sqlite3.Row) -> int:
    """The pause after a failed or lost attempt, in microseconds: doubling, capped, jittered."""
    base, cap = lease["retry_base"], lease["retry_cap"]
    base = span(RETRY_BASE) if base is None else base
    cap = span(RETRY_CAP) if cap is None else cap
    return int(min(cap, base * 2 ** min(lease["attempt"] - 1, 30)) * random.uniform(0.75, 1))


def _complete(t: Transaction, owner: dict[str, Any], outcome: Outcome) -> Settled | None:
    if t.one(COMPLETE, **owner, result=outcome.result, now=t.now) is None:
        return None
    t.all(LEAVE, job_id=outcome.job_id)
    return _ok(owner, JobStatus.COMPLETED)


def _fail(
    t: Transaction, owner: dict[str, Any], lease: sqlite3.Row, outcome: Outcome
) -> Settled | None:
    failure = outcome.failure
    assert failure is not None  # check_outcomes has seen to it
    error = last_error(failure)
    delay = optional_span(outcome.delay)
    due = t.now + (backoff(lease) if delay is None else delay)
    may_queue = failure.retryable and not failure.cancel
    if may_queue and t.one(FAIL_AND_QUEUE, **owner, due=due, last_error=error):
        note_attempt(t, owner["job_id"], lease, verb="fail", outcome="failed", failure=failure)
        return _ok(owner, JobStatus.QUEUED, due)
    job = t.one(END_UNSEALED, **owner)
    if job is None:
        return None
    cancelled = job["cancel_requested"] or failure.cancel
    status = JobStatus.CANCELLED if cancelled else JobStatus.FAILED
    note_attempt(t, owner["job_id"], lease, verb="fail", outcome=status, failure=failure)
    note_end(t, job, status, last_error=error)
    return _ok(owner, status)


def _release(
    t: Transaction, owner: dict[str, Any], lease: sqlite3.Row, outcome: Outcome
) -> Settled | None:
    due = t.now + (optional_span(outcome.delay) or 0)
    if t.one(RELEASE_AND_QUEUE, **owner, due=due, started=outcome.started):
        note_attempt(t, owner["job_id"], lease, verb="release", outcome="released")
        return _ok(owner, JobStatus.QUEUED, due)
    job = t.one(END_UNSEALED, **owner)
    if job is None:
        return None
    if job["cancel_requested"]:
        status, how, error = JobStatus.CANCELLED, "cancelled", job["last_error"]
    elif job["token"] >= job["token_limit"]:
        status, how, error = JobStatus.FAILED, "released", given_back(job["token"])
    else:
        status, how, error = JobStatus.FAILED, "released", "given back on the last attempt"
    note_attempt(t, owner["job_id"], lease, verb="release", outcome=how)
    note_end(t, job, status, last_error=error)
    return _ok(owner, status)


def _acknowledge_cancel(
    t: Transaction, owner: dict[str, Any], lease: sqlite3.Row, outcome: Outcome
) -> Settled | None:
    job = t.one(END_CANCELLED, **owner)
    if job is None:
        return None
    note_attempt(t, owner["job_id"], lease, verb="acknowledge_cancel", outcome="cancelled")
    note_end(t, job, JobStatus.CANCELLED)
    return _ok(owner, JobStatus.CANCELLED)


_VERBS = {
    Verb.FAIL: _fail,
    Verb.RELEASE: _release,
    Verb.ACKNOWLEDGE_CANCEL: _acknowledge_cancel,
}


def last_error(failure: Failure) -> str:
    said = [text for text in (failure.error_type, failure.message) if text]
    return cut_text(": ".join(said), LAST_ERROR_BYTES)


def given_back(token: int) -> str:
    return f"given back {token} times"


def _ok(owner: dict[str, Any], status: JobStatus, due: int | None = None) -> Settled:
    return Settled(
        job_id=owner["job_id"],
        token=owner["token"],
        verdict=Verdict.OK,
        status=status,
        next_attempt_at=None if due is None else moment(due),
    )
