"""Predicates that no test can miss, each with the reason."""

from __future__ import annotations

_ATTEMPT_0 = "a job without an attempt is queued: a claim spends one, and a refund ends the lease"

_NOTHING_TO_TRIM = "spares a search where no attempt was noted, or too few were"

_A_WORKER_MEANS_RUNNING = "a job has a worker and a lease exactly while it runs: a CHECK"

_STARTS_LATER = "spares a scan of what died: no job that is due is before the floor"

_ONLY_FAIL = "an attempt that ended by another verb has no error to show"

_NO_OTHER_LOCK = "no lock of another type has such a value in the column that is tested"

_ALL_LANES = "the earliest time of all lanes is asked for, in whichever lane it is found"

EQUIVALENTS: dict[str, str] = {
    "postgres check_json: and v_bytes >= 130": "spares a search: nothing so deep is so short",
    "postgres claim: and (v_floors)[2] > 0": "spares a setting: without T it says nothing yet",
    "postgres claim: and v_met": "spares a setting: what would be kept is kept already",
    "postgres claim: continue when v_take = 0": "spares a statement that takes nothing",
    "postgres end_queued: and CAST(j.status AS text) = 'queued'": (
        "its callers have locked the row and found it queued"
    ),
    "postgres enqueue_many: exit when v_made = cardinality(v_new)": (
        "spares a search for what was just inserted"
    ),
    "postgres guard: and j.cancel_requested (2)": (
        "nothing else keeps the update from a row with this id, token and worker"
    ),
    "postgres next_lane: and v_met <= 20": "beyond the last lane is no floor: that ends it too",
    "postgres held: and j.status = 'running'": _A_WORKER_MEANS_RUNNING,
    (
        "postgres lane_floors: and j.next_attempt_at >= instant((v_floors)[4 + v_lane])"
    ): _STARTS_LATER,
    "postgres lapsed: and j.status = 'running'": _A_WORKER_MEANS_RUNNING,
    (
        "postgres next_eligible_job_id: and j.next_attempt_at >= "
        "instant(GREATEST((v_floors)[4 + v_lane], 0))"
    ): _STARTS_LATER,
    "postgres next_due: and j.priority = (v_lane - 1) / 2": _ALL_LANES,
    "postgres next_due: and j.solo = (v_lane % 2 = 0)": _ALL_LANES,
    (
        "postgres next_due: and j.next_attempt_at >= instant(GREATEST((v_floors)[4 + v_lane], 0))"
    ): _STARTS_LATER,
    "postgres notify_waiters: or cardinality(p_job_ids) = 0": "spares a test for waiters",
    "postgres renew: if cardinality(v_renewed) = cardinality(p_job_ids)": (
        "spares a search for leases that were not renewed"
    ),
    "postgres results: and a.verb = 'fail'": _ONLY_FAIL,
    "postgres seek_stragglers: where cardinality(q.floors) > 0": (
        "spares a look at a queue without floors"
    ),
    "postgres results: on TRUE": "a join that asks for nothing",
    "postgres settle_jobs: and s.status <> 'completed'": _NOTHING_TO_TRIM,
    "postgres settle_jobs: and s.token > 20": _NOTHING_TO_TRIM,
    "postgres settle_jobs: and s.verdict = 'ok'": _NOTHING_TO_TRIM,
    "postgres sleep_end: and l.locktype = 'advisory'": _NO_OTHER_LOCK,
    (
        "postgres sleep_end: and l.database = (SELECT d.oid FROM pg_database AS d"
        " WHERE d.datname = current_database())"
    ): "a session has no locks in another database",
    "postgres sweep_jobs: and d.status IN ('completed', 'failed', 'cancelled')": (
        "the rows of other states were updated before, and PostgreSQL skips them"
    ),
    "postgres sweep_jobs: and j.status = 'running'": _A_WORKER_MEANS_RUNNING,
    "postgres sweep_jobs: where s.token > 20": _NOTHING_TO_TRIM,
    (
        "postgres worker_seen: where NOT EXISTS (SELECT FROM queue AS q WHERE q.queue = a.queue)"
    ): "spares an insertion that would do nothing",
    (
        "postgres writers_ended: if pg_snapshot_xmin(pg_current_snapshot())"
        " >= CAST(CAST(p_horizon AS text) AS xid8)"
    ): "spares the closer look, which then finds nobody either",
    "postgres writers_ended: and writes.locktype = 'relation'": _NO_OTHER_LOCK,
    "postgres writers_ended: and xact.locktype = 'transactionid'": _NO_OTHER_LOCK,
    "sqlite sqlite_records.QUEUES: and status = 'queued'": _ATTEMPT_0,
    "sqlite sqlite_records.QUEUES: and status = 'queued' (2)": _ATTEMPT_0,
    "sqlite sqlite_records.RESULT: and a.verb = 'fail'": _ONLY_FAIL,
    "sqlite sqlite_schema.INSTALLED: and type = 'table'": "nothing else has the name of the table",
}
