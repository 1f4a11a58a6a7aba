"""What an app does to its store from outside of jobs, over a few connections it shares."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tenure.backing import backing_of
from tenure.group_commit import GroupCommit
from tenure.joining import joined_plane
from tenure.limits import MAX_QUEUES, POLL_FLOOR
from tenure.planes import Planes
from tenure.postgres_store import PostgresStore
from tenure.results import Results
from tenure.sqlite_store import SqliteStore
from tenure.values import Enqueued, JobResult, NewJob
from tenure.waits import Waits
from tenure.waker import Waker


class Producer:
    """Enqueues, then wakes whoever sleeps; waits for results. Threads: any.

    What it opens it opens when it is first needed, and again after `close`.
    """

    def __init__(self, store: PostgresStore | SqliteStore, *, schema: str) -> None:
        backing = backing_of(store)
        self.kind = store.kind
        self.schema = schema
        self.planes = Planes(backing.open)
        read = _reading(self.planes)
        waits = Waits(read, backing.watch)
        self.results = Results(lambda job_id: next(iter(read([job_id])), None), waits)
        self._group_commit = GroupCommit(self._commit, self._commit_many)
        self._waker = Waker(_waking(self.planes))
        self._parts = (self._waker, waits, self.planes)
        # What was noted just before the process ends is still sent.
        weakref.finalize(self, _close, *self._parts)

    def close(self) -> None:
        """Send the wakes that are due, and close what is open."""
        _close(*self._parts)

    def enqueue(self, job: NewJob, *, connection: Any = None) -> Enqueued:
        if connection is not None:
            plane = joined_plane(connection, kind=self.kind, schema=self.schema)
            return plane.enqueue(**job._asdict())
        return self._group_commit.add(job)

    def enqueue_many(self, jobs: Sequence[NewJob], *, connection: Any = None) -> list[Enqueued]:
        if connection is not None:
            plane = joined_plane(connection, kind=self.kind, schema=self.schema)
            return plane.enqueue_many(jobs)
        return self._commit_many(jobs)

    def _commit(self, job: NewJob) -> Enqueued:
        woken = False
        with self.planes.lent() as plane:
            if _is_soon(job) and self._waker.yields():
                added, woken = plane.enqueue_and_wake(job)
            else:
                added = plane.enqueue(**job._asdict(), notify=False)
        if not woken:
            self._wake([job], [added])
        return added

    def _commit_many(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        with self.planes.lent() as plane:
            added = plane.enqueue_many(jobs, notify=False)
        self._wake(jobs, added)
        return added

    def _wake(self, jobs: Sequence[NewJob], added: Sequence[Enqueued]) -> None:
        """Have those woken whom no commit wakes by itself."""
        woken = {
            job.queue
            for job, answer in zip(jobs, added, strict=True)
            if answer.created and _is_soon(job)
        }
        if woken:
            self._waker.note(woken)


def _is_soon(job: NewJob) -> bool:
    """Whether a sleeper needs to know of it: what is due later it finds at its poll floor."""
    return not (isinstance(job.delay, timedelta) and job.delay > POLL_FLOOR)


def _reading(planes: Planes) -> Callable[[Sequence[int]], list[JobResult]]:
    def read(job_ids: Sequence[int]) -> list[JobResult]:
        with planes.lent() as plane:
            return plane.results(job_ids)

    return read


def _waking(planes: Planes) -> Callable[[list[str]], None]:
    def wake(queues: list[str]) -> None:
        with planes.lent() as plane:
            for first in range(0, len(queues), MAX_QUEUES):
                plane.wake(queues[first : first + MAX_QUEUES])

    return wake


def _close(waker: Waker, waits: Waits, planes: Planes) -> None:
    waker.close()
    waits.close()
    planes.close()
