"""Frozen values that a control plane hands out: receipts, never handles."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

Json: TypeAlias = Any
"""What JSON can hold: None, bool, int, float, str, list and dict with str keys."""


class JobStatus(StrEnum):
    """Where a job is in its life."""

    QUEUED = "queued"
    """Waits for a worker, from its due time on."""
    RUNNING = "running"
    """Lent to one worker until its lease lapses."""
    COMPLETED = "completed"
    """Its work was reported complete; never claimed again."""
    FAILED = "failed"
    """Out of attempts, or failed for good; `retry` can queue it again."""
    CANCELLED = "cancelled"
    """Cancelled before or while it ran; `retry` can queue it again."""


class Verdict(StrEnum):
    """What became of one call for one job."""

    OK = "ok"
    """Done as asked, now."""
    ALREADY = "already"
    """This very token made this very call before, and it took effect."""
    LOST = "lost"
    """The token is not the current one: somebody else has the job, or it has ended."""
    CANCEL_REQUESTED = "cancel_requested"
    """Unchanged: an accepted cancellation stands in the way."""
    SEALED = "sealed"
    """Unchanged: the outcome is sealed, so only `complete` may end the job."""
    NOT_REQUESTED = "not_requested"
    """Unchanged: nobody asked for the cancellation that was acknowledged."""
    DUPLICATE = "duplicate"
    """Unchanged: another live job holds the dedup key."""
    REFUSED = "refused"
    """Unchanged: the verb means nothing in the state the job is in."""
    DEFERRED = "deferred"
    """Unchanged: somebody holds the row just now, and the token was current; try again."""


class LeaseRenewal(StrEnum):
    """What became of one renewal."""

    RENEWED = "renewed"
    LOST = "lost"
    """Somebody else has the job, or it has ended: stop and write nothing."""
    DEFERRED = "deferred"
    """Ownership is unchanged, the beat could not be written: not a loss, try again."""


class JobLease(NamedTuple):
    """A job lent to one worker until a moment in time.

    A receipt, not a handle: it never changes, and reading it touches no database. Holding one
    does not mean that the lease is still good; only the control plane can say, by accepting
    the token or answering `lost`.
    """

    job_id: int
    token: int
    """The fencing token. It only grows for the life of the job, and it alone decides."""
    worker_id: str
    lease_expires_at: datetime
    """UTC, whole milliseconds. By the database's clock: never compare it with a local one."""
    queue: str
    kind: str
    payload: Json
    priority: int
    attempt: int
    """1 for the first start."""
    max_attempts: int
    timeout: timedelta | None
    """From claim on; the lease is never extended beyond it. None: no limit."""
    buffered: bool
    """Claimed in a batch, so it may not have started; a lapse is not charged."""
    solo: bool
    """Suspected of killing its worker: run it beside no other solo job."""
    progress: Json
    """What an earlier attempt last noted."""
    meta: Json
    created_at: datetime
    last_error: str | None
    """How the attempt before this one ended, as `Type: message`."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in _SHOWN)
        return f"JobLease({shown})"


_SHOWN = [
    name
    for name in JobLease._fields
    if name not in ("payload", "progress", "meta", "last_error")  # a job's own, perhaps secret
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LapsedLease:
    """A lease whose time is past, pinned exactly: a renewal in between defeats a reclaim."""

    job_id: int
    worker_id: str
    token: int
    lease_expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLease:
    """A lease that the database says a worker has."""

    job_id: int
    token: int
    lease_expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """The answer to one renewal."""

    job_id: int
    token: int
    outcome: LeaseRenewal
    lease_expires_at: datetime | None
    """The lease's new end when renewed, its present end when deferred, None when lost."""
    cancel_requested: bool


class Settled(NamedTuple):
    """The answer of a worker's verb for one job."""

    job_id: int
    token: int
    """The token that was shown, not the current one."""
    verdict: Verdict
    status: JobStatus | None
    """The job's status after the call; None when there is no such job."""
    next_attempt_at: datetime | None
    """When the job is due again, if the call queued it."""


class Swept(NamedTuple):
    """What a sweep made of one lapsed lease."""

    job_id: int
    token: int
    """The lapsed lease's token."""
    outcome: str
    """`healed`, `cancelled`, `lost` or `timed out`."""
    status: JobStatus
    next_attempt_at: datetime | None


class NewJob(NamedTuple):
    """A job to be enqueued, its arguments given by name; those in time are durations.

    A tuple, because a batch has ten thousand.
    """

    kind: str
    queue: str = "default"
    payload: Json = None
    priority: int = 5
    """0 first, 9 last, strictly, inside one queue."""
    run_at: datetime | None = None
    """Aware. One in the past becomes now. Not together with `delay`."""
    delay: timedelta | None = None
    max_attempts: int = 5
    dedup_key: str | None = None
    """While a live job of the queue has the key, enqueueing answers with that job's id."""
    timeout: timedelta | None = None
    retry_base: timedelta | None = None
    """First backoff; None: 5 s."""
    retry_cap: timedelta | None = None
    """Longest backoff; None: 1 h."""
    meta: Json = None


class Enqueued(NamedTuple):
    """The id of the job, and whether this call made it."""

    job_id: int
    created: bool
    """False: a live job of the queue has the dedup key, and `job_id` is that job's."""


class Verb(StrEnum):
    """The verbs that end a lease."""

    COMPLETE = "complete"
    FAIL = "fail"
    RELEASE = "release"
    ACKNOWLEDGE_CANCEL = "acknowledge_cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why an attempt failed; each text is cut to a documented size when it is stored."""

    error_type: str
    message: str = ""
    traceback: str | None = None
    retryable: bool = True
    """False: end in `failed` although attempts are left."""
    cancel: bool = False
    """True: end in `cancelled` instead, whatever attempts are left."""


class Outcome(NamedTuple):
    """How one lease is to end, for `settle`."""

    job_id: int
    token: int
    verb: Verb
    result: Json = None
    """For complete."""
    failure: Failure | None = None
    """For fail."""
    delay: timedelta | None = None
    """For fail (None: backoff) and release (None: at once)."""
    started: bool = True
    """For release: False refunds the attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAnswer:
    """The answer of an operator's verb on a job."""

    job_id: int
    verdict: Verdict
    status: JobStatus | None
    holder_pid: int | None
    """With `deferred`: the server process that holds the row, where it can be known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """What has come of a job so far."""

    job_id: int
    token: int
    """Of the lease that ended it, or the job's present one."""
    status: JobStatus
    result: Json = field(repr=False)
    error_type: str | None
    """With `failed`: the class of the exception that was reported, if one was."""
    message: str | None = field(repr=False)
    """With `failed`: that exception's text, or what happened to the last lease."""

    @property
    def has_ended(self) -> bool:
        return self.status not in (JobStatus.QUEUED, JobStatus.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAnswer:
    """The answer of an operator's verb on a queue."""

    queue: str
    verdict: Verdict
    paused_at: datetime | None
    holder_pid: int | None
