"""What the tables themselves keep from being true."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tenure.errors import SchemaOutdated
from tenure.sqlite import SqliteControlPlane
from tenure.sqlite_schema import VERSION
from tenure.values import JobLease


@pytest.fixture
def running(control_plane: SqliteControlPlane) -> JobLease:
    control_plane.enqueue("mail", "send")
    [lease] = control_plane.claim(["mail"], "ada")
    control_plane.enqueue("mail", "send")
    return lease


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ("worker_id = null", "job_runs_exactly_while_a_worker_has_a_whole_lease"),
        ("claimed_at = null", "job_runs_exactly_while_a_worker_has_a_whole_lease"),
        ("lease_expires_at = null", "job_runs_exactly_while_a_worker_has_a_whole_lease"),
        ("status = 'queued'", "job_runs_exactly_while_a_worker_has_a_whole_lease"),
        ("status = 'completed'", "job_is_live"),
        ("lease_expires_at = lease_expires_at + 1", "job_lease_ends_on_a_whole_millisecond"),
        ("sealed_at = 1, cancel_requested = 1", "job_sealed_only_while_running"),
        ("cancel_requested = 2", "job_flags_are_booleans"),
        ("priority = 10", "job_counts_are_in_range"),
        ("attempt = max_attempts + 1", "job_counts_are_in_range"),
        ("token = -1", "job_counts_are_in_range"),
    ],
)
def test_a_running_job_is_whole(
    raw: sqlite3.Connection, running: JobLease, change: str, constraint: str
) -> None:
    with pytest.raises(sqlite3.IntegrityError, match=constraint):
        raw.execute(f"update tenure_job set {change} where id = ?", (running.job_id,))


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ("worker_id = 'ada'", "job_runs_exactly_while_a_worker_has_a_whole_lease"),
        ("attempt = max_attempts", "job_queued_has_attempts_left_and_no_cancel_pending"),
        ("cancel_requested = 1", "job_queued_has_attempts_left_and_no_cancel_pending"),
        ("buffered = 1", "job_flags_of_a_lease_end_with_it"),
        ("reclaimed = 1", "job_flags_of_a_lease_end_with_it"),
        ("sealed_at = 1", "job_sealed_only_while_running"),
    ],
)
def test_a_queued_job_has_nothing_of_a_lease(
    raw: sqlite3.Connection, running: JobLease, change: str, constraint: str
) -> None:
    with pytest.raises(sqlite3.IntegrityError, match=constraint):
        raw.execute(f"update tenure_job set {change} where status = 'queued'")


def test_the_id_of_a_job_that_left_is_never_given_to_another(
    control_plane: SqliteControlPlane, raw: sqlite3.Connection
) -> None:
    last = control_plane.enqueue("mail", "send").job_id
    control_plane.cancel(last)
    raw.execute("delete from tenure_history")

    assert control_plane.enqueue("mail", "send").job_id == last + 1


def test_an_application_s_tables_and_version_are_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as application:
        application.execute("create table job (id integer)")
        application.execute("create table queue (id integer)")
        application.execute("pragma user_version = 7")

        SqliteControlPlane(path).close()

        assert application.execute("pragma user_version").fetchone() == (7,)


@pytest.mark.parametrize(
    ("stored", "hint"), [(VERSION + 1, "upgrade the client"), (0, "start with a new file")]
)
def test_tables_of_another_version_are_refused(
    control_plane: SqliteControlPlane, raw: sqlite3.Connection, stored: int, hint: str
) -> None:
    raw.execute("update tenure_install set schema_version = ?", (stored,))

    with pytest.raises(SchemaOutdated, match=f"version {stored} .*{hint}"):
        SqliteControlPlane(control_plane.path)


def test_tables_are_made_all_or_none(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("create view tenure_jobs as select 1")  # in the way of the last statement

        with pytest.raises(sqlite3.OperationalError, match="tenure_jobs already exists"):
            SqliteControlPlane(path)

        assert raw.execute("select count(*) from sqlite_master").fetchone() == (1,)


def test_a_long_wait_in_one_lane_is_read_from_an_index(raw: sqlite3.Connection) -> None:
    from tenure import sqlite_claim, sqlite_lease

    def plan(sql: str) -> str:
        names = [
            "worker_id",
            "job_id",
            "now",
            "until",
            "buffered",
            "queue",
            "priority",
            "solo",
            "limit",
        ]
        rows = raw.execute(f"explain query plan {sql}", dict.fromkeys(names, 1))
        return "\n".join(row[3] for row in rows)

    lane = "INDEX tenure_job_lane (queue=? AND priority=? AND solo=?"
    for sql in (sqlite_claim.FIRST_DUE, sqlite_claim.LEASE_LANE, sqlite_claim.FIRST_WAITING):
        assert lane in plan(sql)
        assert "ORDER BY" not in plan(sql)
    assert "INDEX tenure_job_running" in plan(sqlite_lease.LAPSED)
    assert "ORDER BY" not in plan(sqlite_lease.LAPSED)


def test_a_renewal_writes_the_same_few_pages_whatever_the_payload(
    control_plane: SqliteControlPlane, raw: sqlite3.Connection
) -> None:
    """O25."""

    def written_by_a_renewal(size: int) -> int:
        job_id = control_plane.enqueue("mail", "send", "x" * size).job_id
        control_plane.claim_job(job_id, "ada")
        raw.execute("pragma wal_checkpoint(truncate)").fetchall()
        control_plane.renew("ada", [(job_id, 1)])
        return control_plane.path.with_name("jobs.db-wal").stat().st_size

    assert written_by_a_renewal(1_000_000) == written_by_a_renewal(1_000) < 20_000
