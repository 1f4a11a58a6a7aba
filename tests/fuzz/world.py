"""A handful of jobs in assorted states, and whether anything about them has changed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg

from tests.fuzz.arguments import Known

EMPTY = """
truncate tenure.job, tenure.job_history, tenure.attempt, tenure.queue, tenure.worker;
update tenure.install
   set notify = default, stragglers_sought_at = default, stragglers_cost = default;
"""

BUILD = """
select tenure.enqueue('q', 'work', p_priority => p) from generate_series(4, 6) as p;
select tenure.enqueue('q', 'work', '{"a": 1}', p_delay => '1 hour', p_dedup_key => 'key');
select tenure.enqueue('mail', 'work', p_max_attempts => 1, p_timeout => '1 hour')
  from generate_series(1, 3);
select tenure.enqueue('paused', 'work');
select tenure.pause('paused');
select tenure.worker_seen('ada', array['q', 'mail']);

select tenure.enqueue('build', 'work') from generate_series(1, 9);
do $$
declare
  a tenure.lease[] := array(select l from tenure.claim(array['build'], 'ada', 4) as l);
  b tenure.lease[] := array(select l from generate_series(1, 5) as i,
                                          tenure.claim(array['build'], 'bob', 1, '100 ms') as l);
begin
  perform tenure.complete(a[1].job_id, 'ada', a[1].token, '"done"'),
          tenure.fail(a[2].job_id, 'ada', a[2].token, 'E', 'broken'),
          tenure.seal(b[1].job_id, 'bob', b[1].token, '"sealed"'),
          tenure.cancel(b[2].job_id),
          tenure.cancel(a[3].job_id),
          tenure.fail(b[3].job_id, 'bob', b[3].token, 'E', 'for good', p_retryable => false);
end;
$$;
select tenure.cancel(tenure.next_eligible_job_id(array['build']));
"""
"""Queued, due and not, paused; running in a batch and alone, lapsing in 100 ms; every end."""

JOBS = """
select id, token, coalesce(worker_id, 'ada'), lease_expires_at::text from tenure.job
union all
select id, token, coalesce(worker_id, 'ada'), null from tenure.job_history
 order by id desc
 limit 25
"""

TABLES = ("job", "job_history", "attempt", "queue", "worker", "install")

VERSIONS = ",\n".join(
    "(select string_agg(concat_ws(' ', r.tableoid, r.ctid, r.xmin), ','"
    f" order by r.tableoid, r.ctid) from tenure.{table} as r)"
    for table in TABLES
)

SIGHT = f"""
select array[{VERSIONS},
         (select count(*)::text from pg_locks as l
           where l.locktype = 'advisory' and l.pid = any (%s))],
       t.at,
       array(select row(j.id, j.token, j.next_attempt_at)::text from tenure.job as j
              where j.status = 'queued' and j.next_attempt_at < t.at),
       array(select row(j.id, j.token, j.next_attempt_at)::text from tenure.job as j
              where j.status = 'queued' and j.next_attempt_at < %s),
       array(select j.id from tenure.job as j
              where j.lease_expires_at < j.claimed_at + interval '99 ms'),
       (select count(*) from tenure.job)
  from clock_timestamp() as t(at)
"""

VIEWS = """
select c.relname from pg_class as c
 where c.relnamespace = 'tenure'::regnamespace and c.relkind = 'v'
"""


@dataclass(frozen=True, slots=True)
class Sight:
    """The database after a call."""

    rows: list[str | None]
    """Which version of each row there is, and how many advisory locks the sessions hold."""
    at: datetime
    due: frozenset[str]
    """What is due by then."""
    due_before: frozenset[str]
    """What was due before the call."""
    lapsed: list[int]
    """Leases that were over when they were granted."""
    jobs: int


class World:
    """The database, looked at by its owner."""

    def __init__(self, owner: psycopg.Connection[Any]) -> None:
        self._owner = owner

    def build(self) -> None:
        self._owner.execute(EMPTY)
        self._owner.execute(BUILD)
        time.sleep(0.1)  # the short leases lapse

    def known(self) -> Known:
        [horizon] = self._owner.execute(
            "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
        ).fetchone() or (0,)
        infinite = self._owner.info.server_version >= 17_00_00
        return Known(self._owner.execute(JOBS).fetchall(), horizon, infinite)

    def sight(self, pids: list[int], before: datetime) -> Sight:
        row = self._owner.execute(SIGHT, [pids, before]).fetchone()
        assert row is not None
        rows, at, due, due_before, lapsed, jobs = row
        return Sight(rows, at, frozenset(due), frozenset(due_before), lapsed, jobs)

    def views(self) -> list[str]:
        return [name for [name] in self._owner.execute(VIEWS)]
