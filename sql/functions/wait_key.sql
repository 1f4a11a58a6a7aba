-- wait_key(job_id) -> integer (internal)
--
-- The second half of the advisory lock of whoever waits for the end of a job. Jobs share 32 keys,
-- so that no session needs more, however many jobs it waits for. -1 is the key of all who wait;
-- a queue that has one of these keys costs a needless notification (queue_key).
create or replace function wait_key(
  p_job_id bigint
)
  returns integer
  language sql
  immutable
  security definer
  set search_path from current
as $$
  select (-2 - p_job_id % 32)::integer;
$$;
