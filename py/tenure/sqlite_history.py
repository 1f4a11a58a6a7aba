"""Writes down how leases and jobs ended."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from tenure.limits import ATTEMPTS_KEPT
from tenure.sqlite_transaction import Transaction
from tenure.values import Failure, JobStatus

INSERT_ATTEMPT = """
insert into tenure_attempt
       (job_id, token, worker_id, attempt, verb, outcome, started_at, ended_at, error_type,
        message, traceback)
values (:job_id, :token, :worker_id, :attempt, :verb, :outcome, :claimed_at, :now, :error_type,
        :message, :traceback)
"""

TRIM_ATTEMPTS = """
delete from tenure_attempt
 where job_id = :job_id
   and token <= (select token
                   from tenure_attempt
                  where job_id = :job_id
                  order by token desc
                  limit 1 offset :kept)
"""

INSERT_HISTORY = """
insert into tenure_history
       (id, queue, kind, payload, priority, status, attempt, max_attempts, token, token_limit,
        worker_id, claimed_at, result, progress, retry_base, retry_cap, timeout, meta, dedup_key,
        created_at, finished_at, last_error)
values (:id, :queue, :kind, :payload, :priority, :status, :attempt, :max_attempts, :token,
        :token_limit, :worker_id, :claimed_at, :result, :progress, :retry_base, :retry_cap,
        :timeout, :meta, :dedup_key, :created_at, :now, :last_error)
"""


def note_attempt(
    t: Transaction,
    job_id: int,
    lease: Mapping[str, Any] | sqlite3.Row,
    *,
    verb: str,
    outcome: str,
    failure: Failure | None = None,
) -> None:
    """A row for a lease that ended without completing its job; the last 20 of the job stay.

    `lease` has the token, worker_id, attempt and claimed_at of the lease that ended.
    """
    t.all(
        INSERT_ATTEMPT,
        job_id=job_id,
        token=lease["token"],
        worker_id=lease["worker_id"],
        attempt=lease["attempt"],
        claimed_at=lease["claimed_at"],
        verb=verb,
        outcome=outcome,
        now=t.now,
        error_type=failure and failure.error_type,
        message=failure and failure.message,
        traceback=failure and failure.traceback,
    )
    t.all(TRIM_ATTEMPTS, job_id=job_id, kept=ATTEMPTS_KEPT)


def note_end(t: Transaction, job: sqlite3.Row, status: JobStatus, **changes: object) -> None:
    """Put a job, whose row has just been deleted, into the history."""
    t.all(INSERT_HISTORY, **{**dict(job), **changes, "status": str(status), "now": t.now})
