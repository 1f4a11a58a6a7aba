"""Several processes on one file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tenure.sqlite import SqliteControlPlane
from tenure.sqlite_records import SqliteRecords
from tenure.values import JobStatus, NewJob
from tests.sqlite.processes import (
    claim_all,
    live_beside_an_application,
    open_and_close,
    together,
)

pytestmark = pytest.mark.timeout(120)


def test_ten_processes_that_open_a_new_file_at_once_make_its_tables_once(path: Path) -> None:
    ids = together(open_and_close, [(path,)] * 10)

    assert sorted(ids) == list(range(1, 11))


def test_two_processes_that_claim_one_by_one_share_2000_jobs_without_a_double(path: Path) -> None:
    """O46."""
    with closing(SqliteControlPlane(path)) as plane:
        jobs = plane.enqueue_many([NewJob(queue="mail", kind="send")] * 2_000)

    one, other = together(claim_all, [(path, "ada"), (path, "bob")])

    assert sorted(one + other) == [(job.job_id, 1) for job in jobs]
    assert one
    assert other


def test_nobody_sees_a_locked_file_while_an_application_holds_it_now_and_then(
    path: Path,
) -> None:
    """O45: neither `database is locked` nor BUSY_SNAPSHOT; beyond 5 s it would be `Busy`."""
    SqliteControlPlane(path).close()

    _, *completed = together(
        live_beside_an_application, [(path, name) for name in ("application", "ada", "bob")]
    )

    assert all(completed)
    with closing(SqliteRecords(path)) as records:
        finished = records.jobs(status=JobStatus.COMPLETED, limit=10_000)
        assert len(finished) == sum(completed)
        assert records.jobs(status=JobStatus.RUNNING) == []
