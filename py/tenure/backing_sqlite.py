"""What a runner needs of a SQLite store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

from tenure.records import JobRecord
from tenure.sleeper_sqlite import SqliteSleeper, wake_sleepers
from tenure.sqlite import SqliteControlPlane
from tenure.sqlite_records import SqliteRecords
from tenure.sqlite_store import SqliteStore
from tenure.values import Enqueued, JobResult, Json, NewJob
from tenure.watch_sqlite import SqliteWatch


class SqlitePlane(SqliteControlPlane):
    """A control plane on a connection of its own, with the housekeeping over the same one."""

    stale = False

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._records: SqliteRecords | None = None

    def wake(self, queues: Sequence[str]) -> None:
        wake_sleepers(self.path)

    def enqueue_and_wake(self, job: NewJob) -> tuple[Enqueued, bool]:
        added = self.enqueue(**job._asdict())
        wake_sleepers(self.path)
        return added, True

    def worker_seen(self, worker_id: str, queues: Sequence[str], info: Json) -> None:
        """Nothing: a file has no table of workers."""

    def job(self, job_id: int) -> JobRecord | None:
        return self._reads().job(job_id)

    def results(self, job_ids: Sequence[int]) -> list[JobResult]:
        return self._reads().results(job_ids)

    def _reads(self) -> SqliteRecords:
        if self._records is None:
            self._records = SqliteRecords(self.path)
        return self._records

    def answer_within(self, limit: timedelta) -> None:
        """Nothing: a file is waited for as long as each call says."""

    def close(self) -> None:
        if self._records is not None:
            self._records.close()
        super().close()


class SqliteBacking:
    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def open(self) -> SqlitePlane:
        return SqlitePlane(self._store.path)

    def check(self) -> None:
        self.open().close()

    def sleeper(
        self,
        queues: Sequence[str],
        *,
        poll_floor: timedelta,
        on_cancel: Callable[[int], None],
    ) -> SqliteSleeper:
        plane = self.open()

        def next_due(names: Sequence[str]) -> timedelta | None:
            due_at = plane.next_due(names)
            return None if due_at is None else due_at - plane.now()

        return SqliteSleeper(
            self._store.path,
            data_version=plane.data_version,
            next_due=next_due,
            poll_floor=poll_floor,
            closed=plane.close,
        )

    def watch(self, told: Callable[[int], None], changed: Callable[[], None]) -> SqliteWatch:
        plane = self.open()
        return SqliteWatch(plane.data_version, closed=plane.close)
