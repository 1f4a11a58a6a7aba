"""The contract through a pooler that gives every transaction another server session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tenure import Tenure
from tenure.postgres import PostgresControlPlane
from tenure.values import LeaseRenewal, Outcome, Verb, Verdict
from tests.tools.pooler import find_pgbouncer, pgbouncer

THREADS = 8
ROUNDS = 12  # psycopg prepares a statement at its sixth use, where it is allowed to


@pytest.fixture
def pooled_dsn(fresh_dsn: str) -> Iterator[str]:
    program = find_pgbouncer()
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("pgbouncer is missing: .ci/run installs it with apt-get")
        pytest.skip("pgbouncer is not installed: apt-get install pgbouncer")
    dbname = psycopg.conninfo.conninfo_to_dict(fresh_dsn)["dbname"]
    with pgbouncer(program, str(dbname)) as dsn:
        yield dsn


def _work(dsn: str, number: int) -> list[int]:
    """Enqueue, claim, renew and settle, one job at a time; the ids of the jobs completed."""
    worker_id = f"worker-{number}"
    done = []
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        plane = PostgresControlPlane(connection)
        for turn in range(ROUNDS):
            plane.enqueue("pooled", "greet", {"from": number, "turn": turn})
            for lease in plane.claim(["pooled"], worker_id, max_jobs=2):
                outcome = Outcome(
                    job_id=lease.job_id, token=lease.token, verb=Verb.COMPLETE, result=number
                )
                # A claim that comes too late for the row has it locked for an instant.
                while (
                    renewal := plane.renew(worker_id, [(lease.job_id, lease.token)])[0]
                ).outcome is LeaseRenewal.DEFERRED:
                    pass
                assert renewal.outcome is LeaseRenewal.RENEWED
                while (
                    settled := plane.settle(worker_id, [outcome])[0]
                ).verdict is Verdict.DEFERRED:
                    pass
                assert settled.verdict is Verdict.OK
                done.append(lease.job_id)
    return done


def test_every_job_is_completed_once_through_a_transaction_pooler(
    pooled_dsn: str, fresh_dsn: str
) -> None:
    """O21: with no statement prepared. The floors that a claim notes in its session are hints
    (DESIGN 6), good for whoever gets the session next; nothing else is left there."""
    with ThreadPoolExecutor(THREADS) as pool:
        done = [
            job_id
            for ids in pool.map(_work, [pooled_dsn] * THREADS, range(THREADS))
            for job_id in ids
        ]

    with psycopg.connect(fresh_dsn) as connection:
        finished = connection.execute(
            "select job_id from tenure.jobs where status = 'completed'"
        ).fetchall()
        left = connection.execute(
            "select count(*) from tenure.jobs where status <> 'completed'"
        ).fetchone()
    assert sorted(done) == sorted(job_id for (job_id,) in finished)
    assert len(done) == len(set(done))
    # A claim that skipped a row locked by another thread may leave the last jobs queued.
    assert left is not None
    assert len(done) + left[0] == THREADS * ROUNDS


def test_the_pooler_does_give_one_client_several_server_sessions(pooled_dsn: str) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        pids = set().union(*pool.map(_pids_seen, [pooled_dsn] * THREADS))
    assert len(pids) > 1


def _pids_seen(dsn: str) -> set[int]:
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        return {
            connection.execute("select pg_backend_pid() from pg_sleep(0.005)").fetchall()[0][0]
            for _ in range(20)
        }


def test_large_batches_go_through_it_in_parts(pooled_dsn: str) -> None:
    batches, size = 4, 2_500
    with (
        Tenure(pooled_dsn, prepare_threshold=None) as app,
        ThreadPoolExecutor(batches) as threads,
    ):
        jobs = [app.new_job("greet", n) for n in range(size)]
        handles = threads.map(app.enqueue_many, [jobs] * batches)
        job_ids = {handle.job_id for batch in handles for handle in batch}
        assert len(job_ids) == len(app.enqueued()) == batches * size
