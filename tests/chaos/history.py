"""What a soak has left behind, as plain values that a test can forge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of a job's row; of a deleted row, its last. Times: microseconds since 1970."""

    seq: int
    xid: int | None
    at: int
    op: str
    place: str
    job_id: int
    status: str
    token: int
    worker_id: str | None
    attempt: int
    max_attempts: int
    buffered: bool
    solo: bool
    cancel_requested: bool
    sealed: bool
    claimed_at: int | None
    lease_expires_at: int | None
    timeout: int | None
    progress: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A job as its table has it in the end."""

    job_id: int
    place: str
    kind: str
    status: str
    token: int
    batch: int | None
    """Which call of the producer made it; None: another job did."""
    result: Any


@dataclass(frozen=True, slots=True)
class Lapse:
    """A row of the attempt table: a lease that ended without completing its job."""

    job_id: int
    token: int
    worker_id: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Effect:
    """A row that a handler wrote inside job.transaction()."""

    job_id: int
    token: int
    worker_id: str
    child_id: int
    xid: int | None


@dataclass(frozen=True, slots=True)
class Start:
    """A handler was entered, as it noted itself."""

    job_id: int
    token: int
    worker_id: str


@dataclass(frozen=True, slots=True)
class Batch:
    """A call of the producer. `job_ids` is None when it was not answered."""

    number: int
    size: int
    job_ids: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Act:
    """A call of the operator, in order. `verdict` is None when it was not answered."""

    verb: str
    job_id: int
    verdict: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All of it."""

    versions: list[Version]
    rows: list[Row]
    lapses: list[Lapse] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)
    lost: int = 0
    """Leases that runners were told they had lost."""


def by_job(versions: Iterable[Version]) -> dict[int, list[Version]]:
    """The versions of each job, in order."""
    jobs: dict[int, list[Version]] = {}
    for version in sorted(versions, key=lambda v: v.seq):
        jobs.setdefault(version.job_id, []).append(version)
    return jobs
