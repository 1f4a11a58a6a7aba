"""`tenure cancel`, `retry`, `pause`, `resume` and `sweep`: each answer in words."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from tenure import cli_operate, sqlite_file
from tenure.store import OwnedControlPlane
from tenure.values import Failure, JobAnswer, JobLease, JobStatus, Verdict
from tests.cli.conftest import Tenure


@pytest.fixture
def lease(tenure: Tenure, plane: OwnedControlPlane) -> JobLease:
    """Job 1, running."""
    tenure("enqueue", "mail", "--max-attempts", 1)
    [lease] = plane.claim(["default"], "w")
    return lease


def test_a_queued_job_is_cancelled_and_a_second_cancel_is_a_success(tenure: Tenure) -> None:
    tenure("enqueue", "mail")
    assert tenure("cancel", 1).out == "job 1 is cancelled\n"
    again = tenure("cancel", 1)
    assert (again.code, again.out) == (0, "job 1 is cancelled already\n")
    assert tenure("show", 1, "--json").json["status"] == "cancelled"


def test_a_running_job_is_asked_to_stop(tenure: Tenure, lease: JobLease) -> None:
    assert tenure("cancel", 1).out == "job 1 runs; its worker has been asked to stop\n"
    assert tenure("cancel", 1).out == "job 1 runs; its worker has been asked to stop already\n"
    assert tenure("show", 1, "--json").json["cancel_requested"] is True


def test_a_sealed_job_is_not_cancelled(
    tenure: Tenure, plane: OwnedControlPlane, lease: JobLease
) -> None:
    plane.seal(1, "w", lease.token)
    ran = tenure("cancel", 1)
    assert ran.code == 1
    assert ran.complaint == (
        "tenure: job 1 is sealed: its outcome is recorded, so it can only complete;"
        " nothing was changed"
    )


def test_a_finished_job_is_not_cancelled(
    tenure: Tenure, plane: OwnedControlPlane, lease: JobLease
) -> None:
    plane.complete(1, "w", lease.token)
    ran = tenure("cancel", 1)
    assert ran.code == 1
    assert "has completed already, so it cannot be cancelled" in ran.complaint


def test_a_job_whose_row_is_held_says_by_whom(
    tenure: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = JobAnswer(job_id=1, verdict=Verdict.DEFERRED, status=JobStatus.RUNNING, holder_pid=4711)
    monkeypatch.setattr(cli_operate, "_ask", lambda *_: held)
    for verb in ("cancel", "retry"):
        ran = tenure(verb, 1)
        assert ran.code == 1
        assert "is held by another transaction (server process 4711), try again" in ran.complaint


def test_a_failed_job_is_retried_with_the_attempts_given(
    tenure: Tenure, plane: OwnedControlPlane, lease: JobLease
) -> None:
    plane.fail(1, "w", lease.token, Failure(error_type="Boom"))
    assert tenure("show", 1, "--json").json["status"] == "failed"
    assert tenure("retry", 1, "--attempts", 3).out == "job 1 is queued again\n"
    job = tenure("show", 1, "--json").json
    assert (job["status"], job["attempt"], job["max_attempts"]) == ("queued", 1, 4)


def test_a_live_job_is_not_retried(tenure: Tenure) -> None:
    tenure("enqueue", "mail")
    ran = tenure("retry", 1)
    assert ran.code == 1
    assert "is queued, and only failed and cancelled jobs can be retried" in ran.complaint


def test_a_job_is_not_retried_beside_another_with_its_dedup_key(tenure: Tenure) -> None:
    tenure("enqueue", "mail", "--dedup-key", "k")
    tenure("cancel", 1)
    tenure("enqueue", "mail", "--dedup-key", "k")
    ran = tenure("retry", 1)
    assert ran.code == 1
    assert "dedup key that another live job of its queue has now" in ran.complaint


@pytest.mark.parametrize("verb", ["cancel", "retry"])
def test_an_unknown_id_is_one_line(tenure: Tenure, verb: str) -> None:
    ran = tenure(verb, 99)
    assert ran.code == 1
    assert ran.complaint.startswith("tenure: job 99 is unknown")


def test_no_attempts_are_no_retry(tenure: Tenure) -> None:
    ran = tenure("retry", 1, "--attempts", 0)
    assert ran.code == 1
    assert "attempts is out of range: 0" in ran.complaint


def test_a_paused_queue_gives_no_jobs_until_it_is_resumed(
    tenure: Tenure, plane: OwnedControlPlane
) -> None:
    tenure("enqueue", "mail")
    assert tenure("pause", "default").out == "queue default is paused\n"
    assert tenure("pause", "default").out == "queue default is paused already\n"
    assert plane.claim(["default"], "w") == []
    assert tenure("resume", "default").out == "queue default is not paused\n"
    assert tenure("resume", "default").out == "queue default is not paused already\n"
    assert len(plane.claim(["default"], "w")) == 1


def test_json_answers_keep_their_keys_and_a_refusal_its_exit_code(
    tenure: Tenure, lease: JobLease
) -> None:
    answer = {"job_id": 1, "verdict": "ok", "status": "running", "holder_pid": None}
    assert tenure("cancel", 1, "--json").json == answer
    refused = tenure("retry", 1, "--json")
    assert refused.code == 1
    assert '"verdict": "refused"' in refused.out
    assert "is running, and only failed" in refused.complaint
    paused = tenure("pause", "default", "--json").json
    assert set(paused) == {"queue", "verdict", "paused_at", "holder_pid"}


def test_a_sweep_says_what_it_decided(tenure: Tenure, plane: OwnedControlPlane, file: Path) -> None:
    assert tenure("sweep").out == "no lease has lapsed\n"
    for _ in range(3):
        tenure("enqueue", "mail")
    for _ in range(2):
        plane.claim(["default"], "w", lease_for=timedelta(hours=1))
    [sealed] = plane.claim(["default"], "w", lease_for=timedelta(hours=1))
    plane.seal(sealed.job_id, "w", sealed.token)
    _lapse_all(file)
    assert tenure("sweep", "--limit", 2).out == "2 lost, now queued\n"
    [swept] = tenure("sweep", "--json").json
    assert swept == {
        "job_id": 3,
        "token": sealed.token,
        "outcome": "healed",
        "status": "completed",
        "next_attempt_at": None,
    }


def test_a_file_that_another_writer_holds_is_one_line(
    tenure: Tenure, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenure("enqueue", "mail")
    monkeypatch.setattr(sqlite_file, "PATIENCE", timedelta(milliseconds=50))
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("begin immediate")
        ran = tenure("cancel", 1)
    assert ran.code == 1
    assert "was locked by other writers" in ran.complaint


def _lapse_all(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "update tenure_job set claimed_at = claimed_at - 7200000000,"
            " lease_expires_at = lease_expires_at - 7200000000"
        )
