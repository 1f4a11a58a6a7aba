"""Durable jobs with leases, in PostgreSQL or SQLite."""

from __future__ import annotations

from tenure.app import Tenure
from tenure.async_app import AsyncTenure
from tenure.control_plane import ControlPlane
from tenure.draining import Drained
from tenure.errors import (
    Busy,
    CancelRequested,
    CommitInDoubt,
    InvalidArgument,
    JobCancelled,
    JobFailed,
    JobUnknown,
    LeaseLost,
    NotEnded,
    SchemaOutdated,
    ServerUnavailable,
    TenureError,
    TimedOut,
    TransactionOpen,
    WrongIsolation,
)
from tenure.hooks import Hooks, JobEvent
from tenure.identity import new_worker_id
from tenure.job import Job
from tenure.postgres import PostgresControlPlane
from tenure.records import AttemptRecord, JobRecord, QueueRecord, Records
from tenure.results import AsyncHandle, Handle
from tenure.runner import WorkerRunner
from tenure.signals import Cancel, Fail, HandlerSignal, Release, Retry
from tenure.sqlite import SqliteControlPlane
from tenure.store import open_store
from tenure.values import (
    Enqueued,
    Failure,
    HeldLease,
    JobAnswer,
    JobLease,
    JobStatus,
    LapsedLease,
    LeaseRenewal,
    NewJob,
    Outcome,
    QueueAnswer,
    Renewal,
    Settled,
    Swept,
    Verb,
    Verdict,
)
from tenure.worker import Worker

__all__ = [
    "AsyncHandle",
    "AsyncTenure",
    "AttemptRecord",
    "Busy",
    "Cancel",
    "CancelRequested",
    "CommitInDoubt",
    "ControlPlane",
    "Drained",
    "Enqueued",
    "Fail",
    "Failure",
    "Handle",
    "HandlerSignal",
    "HeldLease",
    "Hooks",
    "InvalidArgument",
    "Job",
    "JobAnswer",
    "JobCancelled",
    "JobEvent",
    "JobFailed",
    "JobLease",
    "JobRecord",
    "JobStatus",
    "JobUnknown",
    "LapsedLease",
    "LeaseLost",
    "LeaseRenewal",
    "NewJob",
    "NotEnded",
    "Outcome",
    "PostgresControlPlane",
    "QueueAnswer",
    "QueueRecord",
    "Records",
    "Release",
    "Renewal",
    "Retry",
    "SchemaOutdated",
    "ServerUnavailable",
    "Settled",
    "SqliteControlPlane",
    "Swept",
    "Tenure",
    "TenureError",
    "TimedOut",
    "TransactionOpen",
    "Verb",
    "Verdict",
    "Worker",
    "WorkerRunner",
    "WrongIsolation",
    "new_worker_id",
    "open_store",
]
