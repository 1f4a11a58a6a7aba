"""Jobs, attempts, queues as frozen values: all that the contract can tell apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from tenure.records import AttemptRecord, JobRecord
from tenure.values import JobStatus, Json

LEASE_FOR = timedelta(seconds=30)
RETRY_BASE = timedelta(seconds=5)
RETRY_CAP = timedelta(hours=1)
KEPT_ATTEMPTS = 20

LIVE = frozenset({JobStatus.QUEUED, JobStatus.RUNNING})
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job with its past."""

    job_id: int
    queue: str
    kind: str
    payload: Json = None
    priority: int = 5
    max_attempts: int = 5
    token_limit: int
    dedup_key: str | None = None
    timeout: timedelta | None = None
    retry_base: timedelta | None = None
    retry_cap: timedelta | None = None
    meta: Json = None
    created_at: datetime

    status: JobStatus = JobStatus.QUEUED
    attempt: int = 0
    token: int = 0
    next_attempt_at: datetime | None
    """When a queued job is due; the earliest moment while the real one is not adopted."""
    due_by: datetime | None = None
    """The latest moment, while the real one is not adopted."""
    worker_id: str | None = None
    claimed_at: datetime | None = None
    lease_expires_at: datetime | None = None
    finished_at: datetime | None = None
    cancel_requested: bool = False
    sealed_at: datetime | None = None
    buffered: bool = False
    solo: bool = False
    reclaimed: bool = False
    result: Json = None
    progress: Json = None
    last_error: str | None = None
    attempts: tuple[AttemptRecord, ...] = ()
    """Of leases that ended without completing the job, the last 20, oldest first."""

    @property
    def is_live(self) -> bool:
        return self.status in LIVE

    def is_owned(self, worker_id: str, token: int) -> bool:
        """Whether this lease is the current one."""
        return (
            self.status is JobStatus.RUNNING and self.token == token and self.worker_id == worker_id
        )

    def has_lapsed(self, now: datetime) -> bool:
        return self.lease_expires_at is not None and self.lease_expires_at <= now

    def is_due(self, now: datetime) -> bool:
        """Raises `Undetermined` where that depends on a moment that was not adopted."""
        if self.status is not JobStatus.QUEUED or self.next_attempt_at is None:
            return False
        if self.due_by is not None and self.next_attempt_at <= now < self.due_by:
            raise Undetermined(f"job {self.job_id} may be due or not: adopt its due time first")
        return self.next_attempt_at <= now


class Undetermined(Exception):
    """The model cannot tell, because reality was free and its choice was not adopted."""


class Waits:
    """The answer to a call that waits until somebody else's transaction has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What one caller would see, and what is in its way just now."""

    now: datetime
    jobs: Mapping[int, Job] = field(default_factory=dict)
    paused: Mapping[str, datetime] = field(default_factory=dict)
    held: frozenset[int] = frozenset()
    """Jobs whose rows another transaction holds."""
    held_keys: frozenset[tuple[str, str]] = frozenset()
    """(queue, dedup_key) of which only another transaction's end will tell who has it."""
    busy: bool = False
    """SQLite: another transaction has the file."""

    def job(self, job_id: int) -> Job | None:
        return self.jobs.get(job_id)

    def owned(self, job_id: int, worker_id: str, token: int) -> Job | None:
        """The job if this lease on it is current, held or not."""
        job = self.jobs.get(job_id)
        return job if job is not None and job.is_owned(worker_id, token) else None

    def is_held(self, job_id: int) -> bool:
        return self.busy or job_id in self.held

    def holder_of_key(self, queue: str, dedup_key: str) -> Job | None:
        """The live job that has a dedup key."""
        for job in self.jobs.values():
            if (job.queue, job.dedup_key) == (queue, dedup_key) and job.is_live:
                return job
        return None

    def changed(self, job: Job, **changes: Any) -> World:
        """The world with one job put in its place, changed."""
        return replace(self, jobs={**self.jobs, job.job_id: replace(job, **changes)})

    def shown(self, job_id: int) -> JobRecord | None:
        """The job as people see it; compare with `Records.job`."""
        job = self.jobs.get(job_id)
        if job is None:
            return None
        return JobRecord(shade=self._shade(job), **{n: getattr(job, n) for n in _RECORDED})

    def _shade(self, job: Job) -> str:
        if job.status is not JobStatus.QUEUED:
            return str(job.status)
        if job.attempt > 0:
            return "retrying"
        return "queued" if job.is_due(self.now) else "scheduled"


_RECORDED = [name for name in JobRecord.__dataclass_fields__ if name != "shade"]


def at(world: World, now: datetime) -> World:
    """The same world later."""
    if now < world.now:
        raise ValueError("time only moves forward")
    return replace(world, now=now)


def lease_end(now: datetime, lease_for: timedelta, job: Job, claimed_at: datetime) -> datetime:
    """Whole milliseconds, never beyond the timeout."""
    end = now + lease_for
    if job.timeout is not None:
        end = min(end, claimed_at + job.timeout)
    return whole_milliseconds(end)


def whole_milliseconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def backoff(job: Job) -> tuple[timedelta, timedelta]:
    """The shortest and the longest pause after the attempt that the job is in."""
    base = RETRY_BASE if job.retry_base is None else job.retry_base
    cap = RETRY_CAP if job.retry_cap is None else job.retry_cap
    full = base // _MICROSECOND * 2 ** min(job.attempt - 1, 30)
    full = min(full, cap // _MICROSECOND)
    return full * 3 // 4 * _MICROSECOND, full * _MICROSECOND
