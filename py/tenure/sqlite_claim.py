"""Grants leases on due jobs."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from tenure.limits import MAX_PRIORITY
from tenure.sqlite_transaction import Transaction
from tenure.sqlite_values import LEASED, lease_of, leases_of, moment
from tenure.values import JobLease

LANES = tuple((priority, solo) for priority in range(MAX_PRIORITY + 1) for solo in (0, 1))
"""In claim order. One (queue, priority, solo) is one range of one index: what waits elsewhere, or
is delayed, costs a claim nothing."""

LEASE_END = "min(:until, ifnull(:now + timeout, :until)) / 1000 * 1000"

PAUSED = """
select 1
  from tenure_queue
 where queue = :queue
   and paused_at is not null
"""

FIRST_DUE = """
select id
  from tenure_job
 where status = 'queued'
   and queue = :queue
   and priority = :priority
   and solo = :solo
   and next_attempt_at <= :now
 order by next_attempt_at, id
 limit 1
"""

FIRST_WAITING = """
select next_attempt_at
  from tenure_job
 where status = 'queued'
   and queue = :queue
   and priority = :priority
   and solo = :solo
 order by next_attempt_at
 limit 1
"""

LEASE_LANE = f"""
update tenure_job
   set status = 'running',
       worker_id = :worker_id,
       token = token + 1,
       attempt = attempt + 1,
       claimed_at = :now,
       lease_expires_at = {LEASE_END},
       buffered = :buffered
 where id in (select id
                from tenure_job
               where status = 'queued'
                 and queue = :queue
                 and priority = :priority
                 and solo = :solo
                 and next_attempt_at <= :now
               order by next_attempt_at, id
               limit :limit)
returning {LEASED}
"""

# The compare-and-swap in which one of all who read the candidate wins.
LEASE_CANDIDATE = f"""
update tenure_job
   set status = 'running',
       worker_id = :worker_id,
       token = token + 1,
       attempt = attempt + 1,
       claimed_at = :now,
       lease_expires_at = {LEASE_END}
 where id = :job_id
   and status = 'queued'
   and next_attempt_at <= :now
   and not exists (select 1
                     from tenure_queue
                    where tenure_queue.queue = tenure_job.queue
                      and paused_at is not null)
returning {LEASED}
"""


def next_eligible_job_id(t: Transaction, queues: Sequence[str]) -> int | None:
    for queue in _open(t, queues):
        for priority, solo in LANES:
            row = t.one(FIRST_DUE, queue=queue, priority=priority, solo=solo, now=t.now)
            if row is not None:
                return int(row["id"])
    return None


def next_due(t: Transaction, queues: Sequence[str]) -> datetime | None:
    """When the earliest queued job of these queues is due, which may be long ago."""
    rows = [
        t.one(FIRST_WAITING, queue=queue, priority=priority, solo=solo)
        for queue in _open(t, queues)
        for priority, solo in LANES
    ]
    return min((moment(row["next_attempt_at"]) for row in rows if row is not None), default=None)


def claim(
    t: Transaction,
    queues: Sequence[str],
    worker_id: str,
    *,
    max_jobs: int,
    lease_for: int,
    solo: bool,
) -> list[JobLease]:
    """Lease by lanes until `max_jobs` are had; `lease_for` in microseconds."""
    leased: list[sqlite3.Row] = []
    for queue in _open(t, queues):
        for priority, lane_is_solo in LANES:
            room = max_jobs - len(leased)
            if room == 0:
                break
            if lane_is_solo and not solo:
                continue
            rows = t.all(
                LEASE_LANE,
                worker_id=worker_id,
                now=t.now,
                until=t.now + lease_for,
                buffered=int(max_jobs > 1 and not lane_is_solo),
                queue=queue,
                priority=priority,
                solo=lane_is_solo,
                limit=1 if lane_is_solo else room,
            )
            solo = solo and not (lane_is_solo and rows)
            leased += sorted(rows, key=lambda row: (row["next_attempt_at"], row["id"]))
    return leases_of(leased)


def claim_job(t: Transaction, job_id: int, worker_id: str, *, lease_for: int) -> JobLease | None:
    row = t.one(
        LEASE_CANDIDATE, job_id=job_id, worker_id=worker_id, now=t.now, until=t.now + lease_for
    )
    return None if row is None else lease_of(row)


def _open(t: Transaction, queues: Sequence[str]) -> list[str]:
    return [queue for queue in queues if t.one(PAUSED, queue=queue) is None]
