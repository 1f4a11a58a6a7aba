"""O09: a lease whose worker left no trace lapses as any other."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from tests.postgres.races import (
    SECOND,
    Connection,
    SteppedClock,
    call,
    leased,
    one,
    owner,
    wait_until,
)

Session = Callable[[], Connection]


@pytest.fixture
def connection(session: Session, clock: SteppedClock) -> Connection:
    return session()


def test_a_job_is_swept_when_nothing_is_known_of_its_worker(
    session: Session, clock: SteppedClock, connection: Connection
) -> None:
    ada = session()
    call(ada, "worker_seen", "ada", ["q"])
    lease = leased(ada, lease_for=SECOND)
    pid = ada.info.backend_pid
    ada.close()
    wait_until(
        "her session is gone",
        lambda: (
            connection.execute(
                "select from pg_stat_activity where pid = %s and datname = current_database()",
                [pid],
            ).fetchone()
            is None
        ),
    )
    connection.execute("delete from tenure.worker; delete from tenure.queue")
    clock.advance(2 * SECOND)

    [lapsed] = call(connection, "lapsed")
    [swept] = call(connection, "sweep", "bob")

    assert lapsed.job_id == lease.job_id
    assert (swept.job_id, swept.outcome, swept.status) == (lease.job_id, "lost", "queued")
    assert one(connection, "complete", *owner(lease)).verdict == "lost"


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ("lease_expires_at = null", "job_runs_exactly_while_a_worker_has_a_whole_lease"),
        ("worker_id = null", "job_runs_exactly_while_a_worker_has_a_whole_lease"),
        ("claimed_at = null", "job_runs_exactly_while_a_worker_has_a_whole_lease"),
        ("status = 'queued'", "job_runs_exactly_while_a_worker_has_a_whole_lease"),
        ("status = 'failed'", "job_is_live"),
    ],
)
def test_no_running_job_can_be_without_a_whole_lease(
    connection: Connection, change: str, constraint: str
) -> None:
    leased(connection)

    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        connection.execute(f"update tenure.job set {change}".encode())
    assert refused.value.diag.constraint_name == constraint


def test_no_row_of_another_table_is_needed_for_a_job_to_be_seen(connection: Connection) -> None:
    """Neither a foreign key nor a join with who is thought to be alive."""
    keys = connection.execute(
        """
        select c.conname
          from pg_constraint as c
         where c.connamespace = 'tenure'::regnamespace and c.contype = 'f'
        """
    ).fetchall()
    readers = connection.execute(
        """
        select p.proname
          from pg_proc as p
         where p.pronamespace = 'tenure'::regnamespace
           and p.prosrc ~ '(from|join|into|update) worker\\M'
         order by 1
        """
    ).fetchall()
    assert keys == []
    assert readers == [("maintain",), ("worker_seen",)]
