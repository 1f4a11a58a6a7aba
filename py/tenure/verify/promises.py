"""Which promise of docs/guarantees.md stands behind a cell, in that page's words."""

from __future__ import annotations

ONE_OWNER = "one owner"
TOKEN_DECIDES = "the token decides"
NEVER_WAIT = "worker verbs never wait"
NO_JOB_LOST = "no job is lost"
CANCEL_HOLDS = "cancellation holds"
WAKE_UP = "no lost wake-up"
ONLY_SLEEPERS = "only sleepers are notified"
TRANSACTIONS = "transactions"

PROMISES = {
    ONE_OWNER: "One owner. At any instant at most one lease on a job is current. Every change to a "
    "running job proves the token again in the statement that makes the change. A worker that was "
    "paused, partitioned or presumed dead cannot complete, fail, renew, release or update a job "
    "that was taken over, nor commit its own application rows under `guard`.",
    TOKEN_DECIDES: "The token, not the clock. A lapsed lease that nobody took over is still its "
    "owner's: renew and complete succeed.",
    NEVER_WAIT: "Worker verbs never wait and never raise for lost ownership. They answer a verdict "
    "for each job, so that one stale job cannot void a batch. A row that somebody else holds is "
    "skipped and answered `deferred`",
    NO_JOB_LOST: "No job is lost. A job enqueued in a committed transaction ends in exactly one of "
    "completed, failed and cancelled",
    CANCEL_HOLDS: "Cancellation holds. An accepted cancellation is never undone by an automatic "
    "retry, a release, a lapse or a racing completion.",
    WAKE_UP: "No lost wake-up. A sleeping worker starts a job that became due as soon as it is "
    "committed.",
    ONLY_SLEEPERS: "A producer notifies only if somebody sleeps: NOTIFY takes an instance-wide "
    "lock at commit.",
    TRANSACTIONS: "No function commits. enqueue belongs into the transaction that made the job "
    "necessary: the job is seen when that commits, and not at all when it rolls back.",
}
