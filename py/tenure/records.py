"""Jobs, attempts and queues as people look at them: snapshots that carry no authority."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from tenure.errors import InvalidArgument
from tenure.limits import short
from tenure.values import JobStatus, Json

MAX_RECORDS = 10_000

SHADES = ("scheduled", "retrying")
"""Two kinds of queued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A job, live or finished, as it was when it was read; every moment is UTC."""

    job_id: int
    queue: str
    kind: str
    status: JobStatus
    shade: str
    """`scheduled` or `retrying` for two kinds of queued, else the status."""
    priority: int
    attempt: int
    max_attempts: int
    token: int
    worker_id: str | None
    next_attempt_at: datetime | None
    lease_expires_at: datetime | None
    claimed_at: datetime | None
    created_at: datetime
    finished_at: datetime | None
    cancel_requested: bool
    sealed_at: datetime | None
    buffered: bool
    solo: bool
    dedup_key: str | None
    timeout: timedelta | None
    payload: Json = field(repr=False)
    result: Json = field(repr=False)
    progress: Json = field(repr=False)
    meta: Json = field(repr=False)
    last_error: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """A lease that ended without completing its job."""

    job_id: int
    token: int
    worker_id: str
    attempt: int
    verb: str
    """`fail`, `release`, `acknowledge_cancel`, `sweep` or `reclaim`."""
    outcome: str
    """`failed`, `released`, `cancelled`, `lost`, `timed out` or `healed`."""
    started_at: datetime
    """When the lease was claimed."""
    ended_at: datetime
    error_type: str | None
    message: str | None = field(repr=False)
    traceback: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRecord:
    """A queue and its live jobs; each is counted once, by shade."""

    queue: str
    paused_at: datetime | None
    queued: int
    """Due, and never started or given back unstarted."""
    scheduled: int
    """Due later, and never started."""
    retrying: int
    """Queued again after an attempt, due or not."""
    running: int
    oldest_due_at: datetime | None
    """The due time of the job that has waited longest; None when none is due."""


class Records(Protocol):
    """Reads for people; what decides about a job is never read here."""

    def job(self, job_id: int) -> JobRecord | None:
        """The job, live or in the history that is kept."""
        ...

    def jobs(
        self,
        *,
        queue: str | None = None,
        status: JobStatus | str | None = None,
        limit: int = 100,
    ) -> list[JobRecord]:
        """The latest 1 to 10,000 jobs by id, newest first; `status` may be a shade."""
        ...

    def attempts(self, job_id: int) -> list[AttemptRecord]:
        """The attempts of a job that are kept, the last 20 at most, oldest first."""
        ...

    def queues(self) -> list[QueueRecord]:
        """Every queue that has a live job or a setting, by name."""
        ...


def check_shown(status: JobStatus | str) -> str:
    """A status or a shade to look for."""
    known = (*JobStatus, *SHADES)
    if status not in known:
        raise InvalidArgument(f"status is not known: {short(status)}", hint=", ".join(known))
    return str(status)
