"""Finished jobs are not kept for ever."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure import sqlite_operate
from tenure.sqlite import SqliteControlPlane
from tenure.sqlite_records import SqliteRecords
from tenure.values import Failure
from tests.sqlite.conftest import Clock

BROKEN = Failure(error_type="ValueError", message="broken", retryable=False)
DAY = timedelta(days=1)


def test_completed_jobs_are_kept_for_7_days_and_the_others_for_30(
    control_plane: SqliteControlPlane, records: SqliteRecords, clock: Clock
) -> None:
    completed, failed, cancelled, live = (
        control_plane.enqueue("mail", "send").job_id for _ in range(4)
    )
    control_plane.claim_job(completed, "ada")
    control_plane.complete(completed, "ada", 1)
    control_plane.claim_job(failed, "ada")
    control_plane.fail(failed, "ada", 1, BROKEN)
    control_plane.cancel(cancelled)
    control_plane.claim_job(live, "ada")
    control_plane.release(live, "ada", 1, started=True)

    def kept() -> list[int]:
        return sorted(job.job_id for job in records.jobs())

    clock.advance(7 * DAY)
    assert control_plane.maintain() == []
    assert kept() == [completed, failed, cancelled, live]
    clock.advance(timedelta(microseconds=1))
    assert control_plane.maintain() == ["deleted 1 completed jobs"]
    assert kept() == [failed, cancelled, live]
    clock.advance(23 * DAY)
    assert control_plane.maintain() == ["deleted 1 failed jobs", "deleted 1 cancelled jobs"]
    assert kept() == [live]
    assert records.attempts(failed) == []
    assert len(records.attempts(live)) == 1


def test_a_large_history_is_deleted_in_bounded_batches(
    control_plane: SqliteControlPlane,
    records: SqliteRecords,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sqlite_operate, "BATCH", 2)
    ids = [control_plane.enqueue("mail", "send").job_id for _ in range(5)]
    for job_id in ids:
        control_plane.cancel(job_id)
    clock.advance(31 * DAY)
    before = control_plane.data_version()

    assert control_plane.maintain() == ["deleted 5 cancelled jobs"]

    assert records.jobs() == []
    assert control_plane.data_version() == before  # all by this thread's own connection
