"""Says why a worker's verb changed nothing."""

from __future__ import annotations

import sqlite3

from tenure.sqlite_transaction import Transaction
from tenure.sqlite_values import optional_moment
from tenure.values import JobStatus, Settled, Verb, Verdict

LIVE = """
select token, worker_id, status, next_attempt_at, cancel_requested, sealed_at
  from tenure_job
 where id = :job_id
"""

ENDED = """
select token, worker_id, status
  from tenure_history
 where id = :job_id
"""

ATTEMPT = """
select verb, outcome
  from tenure_attempt
 where job_id = :job_id
   and token = :token
   and worker_id = :worker_id
"""


def refused(
    t: Transaction, verb: str, *, job_id: int, worker_id: str, token: int, busy: bool = False
) -> Settled:
    """The verdict on a call whose statement changed nothing, by a plain read.

    `busy`: the statement was never run, because the file could not be had.
    """
    live = t.one(LIVE, job_id=job_id)
    ended = None if live is not None else t.one(ENDED, job_id=job_id)
    due = None
    if live is not None and (live["token"], live["worker_id"]) == (token, worker_id):
        verdict = Verdict.DEFERRED if busy else _in_the_way(verb, live)
    elif _took_effect(t, verb, job_id, worker_id, token, ended):
        verdict = Verdict.ALREADY
        due = live["next_attempt_at"] if live is not None and live["status"] == "queued" else None
    else:
        verdict = Verdict.LOST
    present = live if live is not None else ended
    return Settled(
        job_id=job_id,
        token=token,
        verdict=verdict,
        status=None if present is None else JobStatus(present["status"]),
        next_attempt_at=optional_moment(due),
    )


def _in_the_way(verb: str, live: sqlite3.Row) -> Verdict:
    """What keeps the job's owner from having its way."""
    if verb in (Verb.FAIL, Verb.RELEASE):
        return Verdict.SEALED
    if verb == Verb.ACKNOWLEDGE_CANCEL:
        return Verdict.NOT_REQUESTED if live["sealed_at"] is None else Verdict.SEALED
    if verb == "seal" and not live["cancel_requested"]:
        return Verdict.ALREADY
    return Verdict.CANCEL_REQUESTED


def _took_effect(
    t: Transaction,
    verb: str,
    job_id: int,
    worker_id: str,
    token: int,
    ended: sqlite3.Row | None,
) -> bool:
    """Whether this worker made this very call under this token before."""
    if (
        verb == Verb.COMPLETE
        and ended is not None
        and (ended["token"], ended["worker_id"], ended["status"]) == (token, worker_id, "completed")
    ):
        return True
    attempt = t.one(ATTEMPT, job_id=job_id, token=token, worker_id=worker_id)
    if attempt is None:
        return False
    if verb in (Verb.COMPLETE, "seal"):
        return bool(attempt["outcome"] == "healed")
    return bool(attempt["verb"] == verb)
