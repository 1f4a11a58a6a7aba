"""Decides about leases whose time is past."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from typing import Any

from tenure import sqlite_file
from tenure.sqlite_history import note_attempt, note_end
from tenure.sqlite_lease import lapsed
from tenure.sqlite_settle import LEAVE, backoff, given_back
from tenure.sqlite_transaction import Database, Transaction
from tenure.sqlite_values import optional_moment, whole_milliseconds
from tenure.values import JobStatus, LapsedLease, Swept

logger = logging.getLogger(__name__)

# The candidates were read before the file was locked, so this is the test: a renewal in between
# wins. The new token makes the job ours to decide about; all else is still as the owner left it.
TAKE = """
update tenure_job
   set token = token + 1
 where id = :job_id
   and lease_expires_at <= :now
returning *
"""

QUEUE = """
update tenure_job
   set status = 'queued',
       next_attempt_at = :due,
       attempt = :attempt,
       solo = :solo,
       last_error = :last_error,
       buffered = 0,
       reclaimed = 0,
       worker_id = null,
       claimed_at = null,
       lease_expires_at = null
 where id = :job_id
"""


def sweep(database: Database, worker_id: str, limit: int) -> list[Swept]:
    """Decide about up to `limit` lapsed leases; one that cannot be decided keeps none from it."""
    candidates = database.read(lambda t: lapsed(t, limit))
    if not candidates:
        return []
    try:
        return _write(database, worker_id, candidates)
    except sqlite3.Error:
        return _one_by_one(database, worker_id, candidates)


def _one_by_one(
    database: Database, worker_id: str, candidates: Sequence[LapsedLease]
) -> list[Swept]:
    swept: list[Swept] = []
    for candidate in candidates:
        try:
            swept += _write(database, worker_id, [candidate])
        except sqlite3.Error as error:
            logger.error("job %d could not be swept: %s", candidate.job_id, error)
    return swept


def _write(database: Database, worker_id: str, candidates: Sequence[LapsedLease]) -> list[Swept]:
    return database.write(lambda t: _sweep(t, worker_id, candidates), patience=sqlite_file.PATIENCE)


def _sweep(t: Transaction, worker_id: str, candidates: Sequence[LapsedLease]) -> list[Swept]:
    swept = []
    for candidate in candidates:
        job = t.one(TAKE, job_id=candidate.job_id, now=t.now)
        if job is not None:
            swept.append(_decide(t, worker_id, job))
    return swept


def _decide(t: Transaction, worker_id: str, job: sqlite3.Row) -> Swept:
    """`job` is as its owner left it, but for the token, which is the sweeper's."""
    lease = {**dict(job), "token": job["token"] - 1}
    if job["sealed_at"] is not None:
        return _end(t, worker_id, job, lease, JobStatus.COMPLETED, "healed")
    if job["cancel_requested"]:
        return _end(t, worker_id, job, lease, JobStatus.CANCELLED, "cancelled")
    if job["buffered"]:  # it may not have started, so no time of its own is known to be over
        if lease["token"] >= job["token_limit"]:
            error = given_back(lease["token"])
            return _end(t, worker_id, job, lease, JobStatus.FAILED, "lost", error)
        refunded = {"attempt": job["attempt"] - 1, "solo": 1, "last_error": job["last_error"]}
        return _queue(t, job, lease, "lost", t.now, refunded)
    how, lapse = ("timed out", "timed out") if _timed_out(job) else ("lost", "lease lapsed")
    if job["attempt"] >= job["max_attempts"]:
        error = f"{lapse} on the last attempt"
        return _end(t, worker_id, job, lease, JobStatus.FAILED, how, error)
    spent = {"attempt": job["attempt"], "solo": job["solo"], "last_error": lapse}
    return _queue(t, job, lease, how, t.now + backoff(job), spent)


def _timed_out(job: sqlite3.Row) -> bool:
    if job["timeout"] is None:
        return False
    return bool(job["lease_expires_at"] >= whole_milliseconds(job["claimed_at"] + job["timeout"]))


def _end(
    t: Transaction,
    worker_id: str,
    job: sqlite3.Row,
    lease: dict[str, Any],
    status: JobStatus,
    how: str,
    error: str | None = None,
) -> Swept:
    t.all(LEAVE, job_id=job["id"])
    note_attempt(t, job["id"], lease, verb="sweep", outcome=how)
    note_end(t, job, status, worker_id=worker_id, last_error=error or job["last_error"])
    return _swept(lease, how, status)


def _queue(
    t: Transaction,
    job: sqlite3.Row,
    lease: dict[str, Any],
    how: str,
    due: int,
    changes: dict[str, Any],
) -> Swept:
    t.all(QUEUE, job_id=job["id"], due=due, **changes)
    note_attempt(t, job["id"], lease, verb="sweep", outcome=how)
    return _swept(lease, how, JobStatus.QUEUED, due)


def _swept(lease: dict[str, Any], how: str, status: JobStatus, due: int | None = None) -> Swept:
    return Swept(
        job_id=lease["id"],
        token=lease["token"],
        outcome=how,
        status=status,
        next_attempt_at=optional_moment(due),
    )
