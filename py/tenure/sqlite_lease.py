"""Keeps leases, hands lapsed ones on, reads who has which."""

from __future__ import annotations

import sqlite3

from tenure.sqlite_claim import LEASE_END as GRANTED_END
from tenure.sqlite_history import note_attempt
from tenure.sqlite_transaction import Transaction
from tenure.sqlite_values import LEASED, lease_of, micros, moment
from tenure.values import (
    HeldLease,
    JobLease,
    JobStatus,
    LapsedLease,
    LeaseRenewal,
    Renewal,
    Settled,
    Verdict,
)

# The test of every statement that a lease's owner makes: the token decides, not the clock, so a
# lapsed lease that nobody else was granted is still good. Only running rows have a worker_id (a
# CHECK of the table), so this compares the status too.
OWNED = """id = :job_id
   and token = :token
   and worker_id = :worker_id"""

LEASE_END = "min(:until, ifnull(claimed_at + timeout, :until)) / 1000 * 1000"

RENEW = f"""
update tenure_job
   set lease_expires_at = {LEASE_END}
 where {OWNED}
returning lease_expires_at, cancel_requested
"""

OWNED_LEASE = f"""
select lease_expires_at, cancel_requested
  from tenure_job
 where {OWNED}
"""

UPDATE_OWNED = f"""
update tenure_job
   set progress = ifnull(:progress, progress),
       lease_expires_at = iif(:until is null, lease_expires_at, {LEASE_END})
 where {OWNED}
   and (cancel_requested = 0 or :anyway)
returning id
"""

# One statement is test and change. It takes the file's write lock, or proves that the caller's
# transaction has it, so nothing comes between this and the caller's commit.
GUARD = f"""
update tenure_job
   set lease_expires_at = max(lease_expires_at, {LEASE_END})
 where {OWNED}
   and (cancel_requested = 0 or :anyway)
returning id
"""

CANCEL_REQUESTED = """
select 1
  from tenure_job
 where id = :job_id
   and cancel_requested = 1
"""

LAPSED = """
select id, worker_id, token, lease_expires_at
  from tenure_job
 where lease_expires_at <= :now
 order by claimed_at, id
 limit :limit
"""

HELD = """
select id, token, lease_expires_at
  from tenure_job
 where worker_id = :worker_id
 order by id
"""

LEASE_BEGUN = """
select token, worker_id, attempt, claimed_at
  from tenure_job
 where id = :job_id
"""

# The prior owner, token and instant are pinned: a renewal in between moves the instant and wins.
RECLAIM = f"""
update tenure_job
   set worker_id = :new_worker_id,
       token = token + 1,
       claimed_at = :now,
       lease_expires_at = {GRANTED_END},
       reclaimed = 1
 where {OWNED}
   and lease_expires_at = :lease_expires_at
   and lease_expires_at <= :now
returning {LEASED}
"""


def renew(t: Transaction, worker_id: str, job_id: int, token: int, *, lease_for: int) -> Renewal:
    """Move the lease's end, `lease_for` in microseconds from now."""
    row = t.one(RENEW, job_id=job_id, token=token, worker_id=worker_id, until=t.now + lease_for)
    return _renewal(job_id, token, row, LeaseRenewal.RENEWED)


def unrenewed(t: Transaction, worker_id: str, job_id: int, token: int) -> Renewal:
    """The answer where the file could not be written."""
    row = t.one(OWNED_LEASE, job_id=job_id, token=token, worker_id=worker_id)
    return _renewal(job_id, token, row, LeaseRenewal.DEFERRED)


def update_owned(
    t: Transaction,
    worker_id: str,
    job_id: int,
    token: int,
    *,
    progress: str | None,
    lease_for: int | None,
    anyway: bool,
) -> Settled | None:
    """The answer if it was written; `anyway`: also where a cancellation was accepted."""
    updated = t.one(
        UPDATE_OWNED,
        job_id=job_id,
        token=token,
        worker_id=worker_id,
        progress=progress,
        until=None if lease_for is None else t.now + lease_for,
        anyway=anyway,
    )
    if updated is None:
        return None
    return Settled(
        job_id=job_id,
        token=token,
        verdict=Verdict.OK,
        status=JobStatus.RUNNING,
        next_attempt_at=None,
    )


def cancel_requested(t: Transaction, job_id: int) -> bool:
    return t.one(CANCEL_REQUESTED, job_id=job_id) is not None


def lapsed(t: Transaction, limit: int) -> list[LapsedLease]:
    return [
        LapsedLease(
            job_id=row["id"],
            worker_id=row["worker_id"],
            token=row["token"],
            lease_expires_at=moment(row["lease_expires_at"]),
        )
        for row in t.all(LAPSED, now=t.now, limit=limit)
    ]


def held(t: Transaction, worker_id: str) -> list[HeldLease]:
    return [
        HeldLease(
            job_id=row["id"],
            token=row["token"],
            lease_expires_at=moment(row["lease_expires_at"]),
        )
        for row in t.all(HELD, worker_id=worker_id)
    ]


def reclaim(
    t: Transaction, lapsed: LapsedLease, new_worker_id: str, *, lease_for: int
) -> JobLease | None:
    before = t.one(LEASE_BEGUN, job_id=lapsed.job_id)
    row = t.one(
        RECLAIM,
        job_id=lapsed.job_id,
        token=lapsed.token,
        worker_id=lapsed.worker_id,
        lease_expires_at=micros(lapsed.lease_expires_at),
        new_worker_id=new_worker_id,
        now=t.now,
        until=t.now + lease_for,
    )
    if before is None or row is None:
        return None
    note_attempt(t, lapsed.job_id, before, verb="reclaim", outcome="lost")
    return lease_of(row)


def _renewal(job_id: int, token: int, row: sqlite3.Row | None, outcome: LeaseRenewal) -> Renewal:
    return Renewal(
        job_id=job_id,
        token=token,
        outcome=LeaseRenewal.LOST if row is None else outcome,
        lease_expires_at=None if row is None else moment(row["lease_expires_at"]),
        cancel_requested=row is not None and bool(row["cancel_requested"]),
    )
