-- holder_pid(job_id) -> integer (internal)
--
-- The server process whose transaction holds a job's row, where it can be known: not when it has
-- just ended, and not when several share the row.
create or replace function holder_pid(
  p_job_id bigint
)
  returns integer
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
begin
  return (
    select l.pid
      from job as j
      join pg_locks as l on l.transactionid = j.xmax
     where j.id = p_job_id
       and l.locktype = 'transactionid'
       and l.mode = 'ExclusiveLock'
       and l.granted);
end;
$$;
