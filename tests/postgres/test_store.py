"""A PostgreSQL database as a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, timedelta

import psycopg
import pytest

from tenure.errors import InvalidArgument, SchemaOutdated
from tenure.postgres_store import PostgresStore, client_version
from tenure.values import Failure, JobStatus, NewJob


@pytest.fixture
def store(dsn: str) -> Iterator[PostgresStore]:
    store = PostgresStore(dsn)
    yield store
    store.close()


def test_an_empty_database_is_installed_then_passes_the_check(
    empty_database: Callable[[str], str],
) -> None:
    store = PostgresStore(empty_database("bare"), schema="My-Queue")
    with pytest.raises(SchemaOutdated, match="run: tenure migrate"):
        store.check()
    assert store.install() == client_version()
    store.check()
    store.close()


def test_an_older_schema_does_not_pass_and_a_newer_one_does(store: PostgresStore, dsn: str) -> None:
    """O41: a worker checks before its first claim."""
    store.check()
    for version, passes in (("0000", False), ("9999", True)):
        with psycopg.connect(dsn) as connection:
            connection.execute("update tenure.alembic_version set version_num = %s", (version,))
        if passes:
            store.check()
        else:
            with pytest.raises(SchemaOutdated, match="is at version 0000"):
                store.check()


def test_its_connections_commit_at_once_and_say_whose_they_are(dsn: str) -> None:
    with PostgresStore(dsn, prepare_threshold=None).connect() as connection:
        assert connection.autocommit
        assert connection.prepare_threshold is None
        assert connection.info.parameter_status("application_name") == "tenure"
        assert connection.info.get_parameters()["tcp_user_timeout"] == "20000"
        assert connection.info.get_parameters()["keepalives"] == "1"
    with PostgresStore(f"{dsn}{'&' if '?' in dsn else '?'}application_name=web").connect() as mine:
        assert mine.info.parameter_status("application_name") == "web"


def test_each_control_plane_has_a_connection_of_its_own(store: PostgresStore) -> None:
    one, two = store.control_plane(), store.control_plane()
    one.close()
    assert two.held("ada") == []
    two.close()


def test_the_stores_own_connection_is_opened_again_after_it_broke(store: PostgresStore) -> None:
    store.check()
    store.close()
    store.check()


def test_records_show_jobs_attempts_and_queues(store: PostgresStore) -> None:
    plane = store.control_plane()
    first = plane.enqueue(
        "mail", "send", {"to": "é"}, timeout=timedelta(minutes=1), dedup_key="k", meta={"m": 1}
    ).job_id
    later, other = plane.enqueue_many(
        [NewJob(queue="mail", kind="send", delay=timedelta(hours=1)), NewJob(kind="work")]
    )
    lease = plane.claim_job(first, "ada")
    assert lease is not None
    plane.update_owned(first, "ada", lease.token, progress={"done": 1})
    plane.fail(first, "ada", lease.token, Failure(error_type="E", message="m", traceback="t"))
    plane.pause("mail")
    plane.cancel(other.job_id)

    records = store.records()
    job = records.job(first)
    assert job is not None
    assert (job.status, job.shade, job.attempt, job.token) == ("queued", "retrying", 1, 1)
    assert (job.payload, job.progress, job.meta) == ({"to": "é"}, {"done": 1}, {"m": 1})
    assert (job.timeout, job.dedup_key, job.last_error) == (timedelta(minutes=1), "k", "E: m")
    assert job.created_at.tzinfo is UTC
    assert records.job(10**12) is None

    assert [job.job_id for job in records.jobs()] == sorted(
        [first, later.job_id, other.job_id], reverse=True
    )
    assert [job.job_id for job in records.jobs(queue="mail", limit=1)] == [later.job_id]
    assert [job.job_id for job in records.jobs(status=JobStatus.CANCELLED)] == [other.job_id]
    assert [job.job_id for job in records.jobs(status="scheduled")] == [later.job_id]
    with pytest.raises(InvalidArgument, match="status is not known: 'ready'"):
        records.jobs(status="ready")

    [attempt] = records.attempts(first)
    assert (attempt.token, attempt.verb, attempt.outcome) == (1, "fail", "failed")
    assert (attempt.error_type, attempt.message, attempt.traceback) == ("E", "m", "t")
    assert records.attempts(later.job_id) == []

    mail = next(queue for queue in records.queues() if queue.queue == "mail")
    assert mail.paused_at is not None
    assert (mail.queued, mail.scheduled, mail.retrying, mail.running) == (0, 1, 1, 0)
    plane.close()
