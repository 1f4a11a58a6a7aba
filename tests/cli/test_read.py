"""`tenure jobs`, `tenure show` and `tenure queues`."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta

from tenure.records import AttemptRecord, JobRecord, QueueRecord
from tenure.store import OwnedControlPlane
from tenure.values import Failure
from tests.cli.conftest import Tenure


def _fields(record: type) -> set[str]:
    return {field.name for field in dataclasses.fields(record)}


def test_jobs_lists_the_newest_first(tenure: Tenure) -> None:
    for kind in ("a", "b", "c"):
        tenure("enqueue", kind)
    listed = tenure("jobs", "--json", "--limit", 2).json
    assert [job["kind"] for job in listed] == ["c", "b"]
    assert set(listed[0]) == _fields(JobRecord)


def test_jobs_can_be_narrowed_by_queue_and_status(tenure: Tenure, plane: OwnedControlPlane) -> None:
    tenure("enqueue", "a")
    tenure("enqueue", "b", "--queue", "other")
    tenure("enqueue", "c", "--delay", "1h")
    plane.claim(["default"], "w")

    def ids(*options: str) -> list[int]:
        return [job["job_id"] for job in tenure("jobs", "--json", *options).json]

    assert ids("--queue", "other") == [2]
    assert ids("--status", "running") == [1]
    assert ids("--status", "queued") == [3, 2]
    assert ids("--status", "scheduled") == [3]
    assert ids("--queue", "other", "--status", "running") == []


def test_a_listing_has_a_line_per_job_and_is_not_cut_in_a_pipe(tenure: Tenure) -> None:
    kind = "k" * 128
    tenure("enqueue", kind, "--queue", "q" * 128)
    header, line = tenure("jobs").out.splitlines()
    assert header.split()[:5] == ["id", "queue", "kind", "status", "attempt"]
    assert line.split()[:5] == ["1", "q" * 128, kind, "queued", "0/5"]


def test_a_listing_says_what_else_decides_about_a_running_job(
    tenure: Tenure, plane: OwnedControlPlane
) -> None:
    for kind in ("a", "b"):
        tenure("enqueue", kind)
    asked, sealed = (plane.claim(["default"], "w")[0] for _ in range(2))
    plane.cancel(asked.job_id)
    plane.seal(sealed.job_id, "w", sealed.token)
    listed = tenure("jobs").out
    assert "running (cancel requested)" in listed
    assert "running (sealed)" in listed


def test_show_has_the_job_and_its_attempts(tenure: Tenure, plane: OwnedControlPlane) -> None:
    tenure("enqueue", "mail", '{"to": 1}')
    [lease] = plane.claim(["default"], "w")
    plane.fail(
        lease.job_id, "w", lease.token, Failure(error_type="Boom", message="no", traceback="at 1")
    )
    shown = tenure("show", 1, "--json").json
    assert set(shown) == _fields(JobRecord) | {"attempts"}
    assert (shown["shade"], shown["last_error"]) == ("retrying", "Boom: no")
    [attempt] = shown["attempts"]
    assert set(attempt) == _fields(AttemptRecord)
    assert (attempt["worker_id"], attempt["outcome"], attempt["message"]) == ("w", "failed", "no")

    text = tenure("show", 1).out
    assert 'payload           {"to": 1}' in text
    assert "Boom: no" in text
    assert text.endswith("\nat 1\n")


def test_times_are_iso_8601_in_utc_and_durations_seconds(tenure: Tenure) -> None:
    tenure("enqueue", "mail", "--timeout", "1500ms")
    job = tenure("show", 1, "--json").json
    assert job["created_at"].endswith("Z")
    assert datetime.fromisoformat(job["created_at"]).utcoffset() == timedelta(0)
    assert job["timeout"] == 1.5


def test_queues_counts_live_jobs_by_shade(tenure: Tenure, plane: OwnedControlPlane) -> None:
    tenure("enqueue", "a")
    tenure("enqueue", "a")
    tenure("enqueue", "a", "--delay", "1h")
    plane.claim(["default"], "w")
    tenure("pause", "default")
    [queue] = tenure("queues", "--json").json
    assert set(queue) == _fields(QueueRecord)
    assert (queue["queued"], queue["scheduled"], queue["running"]) == (1, 1, 1)
    assert queue["paused_at"] is not None
    assert tenure("queues").out.splitlines()[1].split()[:5] == ["default", "1", "1", "0", "1"]


def test_what_a_job_holds_cannot_steer_the_terminal(
    tenure: Tenure, plane: OwnedControlPlane
) -> None:
    tenure("enqueue", "[red]mail", '"\\u001b[2J[bold]"')
    [lease] = plane.claim(["default"], "w")
    trouble = Failure(error_type="Boom", message="\x1b]0;title\x07", traceback="\x1b[31m")
    plane.fail(lease.job_id, "w", lease.token, trouble)
    for text in (tenure("jobs").out, tenure("show", 1).out):
        assert "\x1b" not in text
        assert "[red]mail" in text
        assert "\\x1b]0;title\\x07" in text


def test_an_unknown_id_is_one_line(tenure: Tenure) -> None:
    ran = tenure("show", 99)
    assert ran.code == 1
    assert ran.complaint.startswith("tenure: job 99 is unknown")


def test_an_id_that_is_no_number_is_a_usage_error(tenure: Tenure) -> None:
    ran = tenure("show", "seven")
    assert ran.code == 2
    assert "'seven' is not a valid integer" in ran.complaint


def test_an_id_that_no_job_can_have_is_refused(tenure: Tenure) -> None:
    ran = tenure("show", "9" * 30)
    assert ran.code == 1
    assert "job_id is out of range" in ran.complaint
