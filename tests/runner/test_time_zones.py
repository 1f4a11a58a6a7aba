"""O37: no time zone of a process, a session or a caller moves a job."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from psycopg.conninfo import make_conninfo

from tenure import InvalidArgument, Job, Tenure

TOKYO = timezone(timedelta(hours=9))


@pytest.fixture(autouse=True)
def in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process's own zone."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    assert time.localtime(0).tm_hour == 19
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(params=["sqlite", "postgres"])
def app(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tenure]:
    if request.param == "sqlite":
        target = str(tmp_path / "jobs.db")
    else:
        target = make_conninfo(
            request.getfixturevalue("fresh_dsn"), options="-c TimeZone=Asia/Tokyo"
        )
    with Tenure(target) as app:
        yield app


def test_a_moment_without_a_zone_is_refused(app: Tenure) -> None:
    with pytest.raises(InvalidArgument, match="has no time zone: 2030-01-01T12:00:00"):
        app.enqueue("work", run_at=datetime(2030, 1, 1, 12))  # noqa: DTZ001 - what is refused

    assert app.enqueued() == []


@pytest.mark.parametrize("zone", [UTC, TOKYO, ZoneInfo("America/New_York")], ids=str)
def test_a_moment_with_a_zone_is_kept_exactly(app: Tenure, zone: timezone) -> None:
    run_at = datetime(2030, 7, 1, 12, 0, 0, 123456, tzinfo=zone)

    app.enqueue("work", run_at=run_at)

    [job] = app.enqueued()
    assert job.next_attempt_at == run_at
    assert job.next_attempt_at.tzinfo is UTC


def test_the_hour_that_a_clock_shows_twice_is_two_moments(app: Tenure) -> None:
    twice = datetime(2030, 11, 3, 1, 30, tzinfo=ZoneInfo("America/New_York"))

    for fold in (0, 1):
        app.enqueue("work", run_at=twice.replace(fold=fold))

    first, second = (job.next_attempt_at for job in app.enqueued())
    assert first == datetime(2030, 11, 3, 5, 30, tzinfo=UTC)
    assert second == datetime(2030, 11, 3, 6, 30, tzinfo=UTC)


def test_a_delay_counts_from_the_databases_clock(app: Tenure) -> None:
    before = datetime.now(UTC)
    app.enqueue("work", delay=timedelta(hours=3))
    after = datetime.now(UTC)

    [job] = app.enqueued()
    assert job.next_attempt_at is not None
    # The server is on this machine, so its clock is ours.
    assert before <= job.next_attempt_at - timedelta(hours=3) <= after


def test_a_job_that_is_due_by_its_zone_runs_and_one_that_is_not_waits(app: Tenure) -> None:
    ran: list[str] = []

    @app.task
    def work(job: Job) -> None:
        ran.append(job.payload)
        assert abs(job.lease.created_at - datetime.now(UTC)) < timedelta(minutes=1)

    minute = timedelta(minutes=1)
    now = datetime.now(TOKYO)
    app.enqueue(work, "a minute ago", run_at=now - minute)
    app.enqueue(work, "in a minute", run_at=now + minute)

    app.worker().run_until_idle()

    assert ran == ["a minute ago"]
