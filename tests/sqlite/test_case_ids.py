"""O13: ids beyond 32 bits go through every verb of a file, and out of its history."""

from __future__ import annotations

import sqlite3
from datetime import timedelta

from tenure.sqlite import SqliteControlPlane
from tenure.sqlite_records import SqliteRecords
from tenure.values import Failure, NewJob, Outcome, Verb
from tests.sqlite.conftest import Clock

LAST_OF_32_BITS = 2**31 - 1
BROKEN = Failure(error_type="Broken", retryable=False)


def test_ids_beyond_32_bits_go_through_every_verb(
    control_plane: SqliteControlPlane,
    records: SqliteRecords,
    clock: Clock,
    raw: sqlite3.Connection,
) -> None:
    plane = control_plane
    plane.cancel(plane.enqueue("q", "work").job_id)
    raw.execute(
        "update sqlite_sequence set seq = ? where name = 'tenure_job'", [LAST_OF_32_BITS - 1]
    )

    ids = [row.job_id for row in plane.enqueue_many([NewJob(queue="q", kind="work")] * 7)]
    assert ids == list(range(LAST_OF_32_BITS, LAST_OF_32_BITS + 7))
    assert plane.next_eligible_job_id(["q"]) == ids[0]
    lease = plane.claim_job(ids[0], "ada")
    assert lease is not None
    others = plane.claim(["q"], "ada", max_jobs=6)
    leases = {one.job_id: one for one in (lease, *others)}
    assert sorted(leases) == ids
    tokens = [(job_id, one.token) for job_id, one in leases.items()]
    assert [renewal.job_id for renewal in plane.renew("ada", tokens)] == list(leases)
    assert sorted(held.job_id for held in plane.held("ada")) == ids

    owners = [(job_id, "ada", leases[job_id].token) for job_id in ids]
    assert plane.update_owned(*owners[0], progress=1).verdict == "ok"
    assert plane.seal(*owners[0], 1).verdict == "ok"
    assert plane.complete(*owners[0]).verdict == "ok"
    assert plane.fail(*owners[1], BROKEN).status == "failed"
    assert plane.release(*owners[2], started=True).status == "queued"
    assert plane.cancel(ids[3]).status == "running"
    assert plane.cancel_requested(ids[3])
    assert plane.acknowledge_cancel(*owners[3]).status == "cancelled"
    settled = plane.settle("ada", [Outcome(job_id=ids[4], token=owners[4][2], verb=Verb.COMPLETE)])
    assert [row.job_id for row in settled] == [ids[4]]
    clock.advance(timedelta(minutes=1))
    assert [lapsed.job_id for lapsed in plane.lapsed()] == ids[5:]
    taken = plane.reclaim(plane.lapsed()[0], "bob")
    assert taken is not None
    assert [swept.job_id for swept in plane.sweep("bob")] == [ids[6]]
    assert plane.retry(ids[1]).status == "queued"

    assert sorted(record.job_id for record in records.jobs(limit=7)) == ids
    assert [attempt.job_id for attempt in records.attempts(ids[1])] == [ids[1]]
    assert {result.job_id for result in records.results(ids)} == set(ids)
    clock.advance(timedelta(days=40))
    plane.maintain()
    live = {ids[1], ids[2], ids[5], ids[6]}
    assert {record.job_id for record in records.jobs()} == live


def test_a_batch_goes_on_after_the_last_id_that_was_ever_given(
    control_plane: SqliteControlPlane, raw: sqlite3.Connection
) -> None:
    """Also beside tables of the application's own that count their rows."""
    raw.execute("create table receipt (id integer primary key autoincrement)")
    raw.execute("insert into receipt default values")
    batch = [NewJob(queue="q", kind="work", payload=n) for n in range(3)]

    first = control_plane.enqueue_many(batch)
    assert [(one.job_id, one.created) for one in first] == [(1, True), (2, True), (3, True)]
    control_plane.cancel(3)
    assert control_plane.enqueue("q", "work").job_id == 4
    assert [one.job_id for one in control_plane.enqueue_many(batch)] == [5, 6, 7]
    assert control_plane.enqueue("q", "work").job_id == 8

    leases = control_plane.claim(["q"], "ada", max_jobs=10)
    assert [(lease.job_id, lease.payload) for lease in leases] == [
        (1, 0), (2, 1), (4, None), (5, 0), (6, 1), (7, 2), (8, None)
    ]  # fmt: skip
