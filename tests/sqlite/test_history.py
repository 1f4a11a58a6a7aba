"""What is kept of how leases ended."""

from __future__ import annotations

from datetime import timedelta

from tenure.sqlite import SqliteControlPlane
from tenure.sqlite_records import SqliteRecords
from tenure.values import Failure

BROKEN = Failure(error_type="ValueError", message="broken")


def test_the_last_20_attempts_of_each_job_are_kept_by_itself(
    control_plane: SqliteControlPlane, records: SqliteRecords
) -> None:
    long, short = (control_plane.enqueue("mail", "send", max_attempts=50).job_id for _ in "ab")

    def fail(job_id: int, times: int) -> None:
        for _ in range(times):
            lease = control_plane.claim_job(job_id, "ada")
            assert lease is not None
            control_plane.fail(job_id, "ada", lease.token, BROKEN, delay=timedelta(0))

    def tokens(job_id: int) -> list[int]:
        return [attempt.token for attempt in records.attempts(job_id)]

    fail(short, 3)
    fail(long, 22)
    assert tokens(long) == list(range(3, 23))
    assert tokens(short) == [1, 2, 3]
    fail(short, 1)
    assert tokens(short) == [1, 2, 3, 4]
