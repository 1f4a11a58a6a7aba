-- holder_pid(job_id) -> integer (internal)
--
-- The server process whose transaction holds a job's row, where it can be known: by the xid on
-- the row, or, when that is a subtransaction's (as guard's is), because only one other
-- transaction has rows of job locked. Null when it has just ended, or several may be the one.
create or replace function holder_pid(
  p_job_id bigint
)
  returns integer
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
declare
  v_pids integer[];
begin
  v_pids := array(
    select l.pid
      from job as j
      join pg_locks as l on l.transactionid = j.xmax
     where j.id = p_job_id
       -- Its own lock, not that of one who waits for it.
       and l.mode = 'ExclusiveLock');
  if cardinality(v_pids) = 1 then
    return v_pids[1];
  end if;

  v_pids := array(
    select distinct l.pid
      from pg_locks as l
     where l.database = (select d.oid from pg_database as d where d.datname = current_database())
       and l.relation = 'job'::regclass
       and l.mode in ('RowShareLock', 'RowExclusiveLock')
       and l.pid <> pg_backend_pid());
  return case when cardinality(v_pids) = 1 then v_pids[1] end;
end;
$$;
