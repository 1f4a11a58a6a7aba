"""How jobs get into a SQLite file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from tenure import sqlite_enqueue
from tenure.limits import check_bool
from tenure.requests import check_job, check_jobs
from tenure.sqlite_base import Caller
from tenure.values import Enqueued, Json, NewJob


class SqliteProducer(Caller):
    """The producers' part of `SqliteControlPlane`."""

    def enqueue(
        self,
        queue: str,
        kind: str,
        payload: Json = None,
        *,
        priority: int = 5,
        run_at: datetime | None = None,
        delay: timedelta | None = None,
        max_attempts: int = 5,
        dedup_key: str | None = None,
        timeout: timedelta | None = None,
        retry_base: timedelta | None = None,
        retry_cap: timedelta | None = None,
        meta: Json = None,
        notify: bool = True,
    ) -> Enqueued:
        """Add one job, in the caller's transaction where there is one; never commits it.

        Raises `InvalidArgument`, nothing written, and `Busy`. `notify` changes nothing here:
        sleepers see each commit of the file.
        """
        check_bool(notify, "notify")
        job = check_job(
            NewJob(
                queue=queue,
                kind=kind,
                payload=payload,
                priority=priority,
                run_at=run_at,
                delay=delay,
                max_attempts=max_attempts,
                dedup_key=dedup_key,
                timeout=timeout,
                retry_base=retry_base,
                retry_cap=retry_cap,
                meta=meta,
            )
        )
        return self._write(lambda t: sqlite_enqueue.enqueue(t, job))

    def enqueue_many(self, jobs: Sequence[NewJob], *, notify: bool = True) -> list[Enqueued]:
        """Add 1 to 10,000 jobs, all or none; the answers come in the order of `jobs`."""
        check_bool(notify, "notify")
        checked = check_jobs(jobs)
        return self._write(lambda t: sqlite_enqueue.enqueue_many(t, checked))
