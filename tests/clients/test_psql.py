"""A job's whole life, a cancellation by hand and inspection, with psql and nothing else."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients import readme
from tests.conftest import Psql

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def psql_only(empty_database: Callable[[str], str], psql: Psql) -> str:
    """A database in which psql installed tenure."""
    dsn = empty_database("psql")
    psql(dsn, file=ROOT / "sql" / "install.sql")
    return dsn


def test_the_commands_that_the_readme_shows_run_a_jobs_whole_life(
    psql_only: str, psql: Psql
) -> None:
    printed = psql(psql_only, "-A", "-t", "-F", " ", stdin=readme.code("In psql", "sql"))

    lines = printed.splitlines()
    assert lines[0] == "1 t"
    assert lines[1].startswith("1 1 renewed ")
    assert lines[2:5] == ["1 1 ok completed ", "1 1 already completed ", "1 2 lost completed "]
    assert lines[5:7] == ["2 ok cancelled ", "2 ok queued "]
    assert lines[7] == '1 welcome completed 1 {"sent": true} '
    assert lines[8] == "2 welcome queued 0  "
    assert lines[9].startswith("mail  1 0 0 ")
    assert len(lines) == 10


def test_a_running_job_is_cancelled_by_hand(psql_only: str, psql: Psql) -> None:
    printed = psql(
        psql_only,
        "-A",
        "-t",
        stdin="""
        select job_id from tenure.enqueue('mail', 'welcome') \\gset
        select token from tenure.claim(array['mail'], 'worker-1') \\gset
        select verdict, status from tenure.cancel(:job_id);
        select outcome, cancel_requested
          from tenure.renew('worker-1', array[:job_id], array[:token]);
        select verdict, status from tenure.complete(:job_id, 'worker-1', :token);
        select verdict, status from tenure.acknowledge_cancel(:job_id, 'worker-1', :token);
        select verb, outcome from tenure.attempts;
        """,
    )

    assert printed.splitlines() == [
        "ok|running",
        "renewed|t",
        "cancel_requested|running",
        "ok|cancelled",
        "acknowledge_cancel|cancelled",
    ]


def test_a_mistake_is_answered_with_what_to_do(psql_only: str, psql: Psql) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        psql(psql_only, stdin="select tenure.enqueue('mail ', 'welcome');")

    said = refused.value.stderr
    assert "queue 'mail ' is not a name" in said
    assert "HINT:  Use 1 to 128 bytes without control characters or blank edges." in said


def test_a_second_installation_into_the_same_schema_is_refused(psql_only: str, psql: Psql) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        psql(psql_only, file=ROOT / "sql" / "install.sql")

    assert "tenure migrate" in refused.value.stderr
