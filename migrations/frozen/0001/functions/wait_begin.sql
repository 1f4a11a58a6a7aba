-- wait_begin(job_ids) -> bigint
--
-- The first step of waiting for the ends of 1 to 1,000 jobs without polling, on a connection that
-- has LISTENed on channel() already and neither sleeps nor does anything else. Takes the shared
-- locks by which whoever ends a job sees that somebody waits, then notes a horizon. After it:
--
--   1. read results, with a growing pause, until sleep_settled(horizon);
--   2. read once more, in a statement begun after that answer;
--   3. only then wait for the notification `d<job_id>`, and read again at each, and at the poll
--      floor.
--
-- One who ended a job and looked for waiters before the locks were taken has an xid below the
-- horizon; once those have ended the job's end is visible, so the last read finds it. One who
-- looks later sees the lock and notifies. Jobs whose ids are equal modulo 32 share a lock, so a
-- wait that has settled covers all of them: it is enough to read once when one more is added.
--
-- Locks:   advisory session locks, shared, 33 at most; those of an earlier call are dropped
--          first. sleep_end lets go of them.
-- Returns: the horizon, or null when the locks could not be had: poll instead.
-- Raises:  22023 for a bad argument; TN003 when the transaction has an xid already, for the
--          horizon must be assigned after the locks were taken.
create or replace function wait_begin(
  p_job_ids bigint[]
)
  returns bigint
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
begin
  perform check_count('the number of jobs', cardinality(p_job_ids), 1000);
  return show_keys(-1 || array(select distinct wait_key(a.job_id)
                                 from unnest(p_job_ids) as a(job_id)
                                where a.job_id is not null));
end;
$$;
