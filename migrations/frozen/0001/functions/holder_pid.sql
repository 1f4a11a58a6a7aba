-- holder_pid(job_id) -> integer (internal)
--
-- The server process whose transaction holds a job's row, where it can be known: not when it has
-- just ended, and not when several share the row.
--
-- A guard writes in a subtransaction, whose xid no lock shows once it is over. Its transaction
-- is older and writes jobs; it is named when it is the only such one.
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
    select coalesce(min(x.pid) filter (where x.transactionid = j.xmax),
                    case when count(*) = 1 then min(x.pid) end)
      from job as j
      join pg_locks as x on x.transactionid = j.xmax
                         or age(x.transactionid) > age(j.xmax)
     where j.id = p_job_id
       and x.locktype = 'transactionid'
       and x.mode = 'ExclusiveLock'
       and x.granted
       and x.pid <> pg_backend_pid()
       and exists (
             select
               from pg_locks as w
              where w.virtualtransaction = x.virtualtransaction
                and w.locktype = 'relation'
                and w.database = (select d.oid from pg_database as d
                                   where d.datname = current_database())
                and w.relation = 'job'::regclass));
end;
$$;
