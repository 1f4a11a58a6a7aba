-- writers_ended(horizon, look_closer) -> boolean (internal)
--
-- Whether every transaction that wrote a due time under an xid below the horizon has ended, so
-- that a statement begun after this one sees whatever it left. The horizon is an xid assigned
-- after an instant T was read, in a transaction that had none before: then no job due before T
-- can appear any more (due_clock has the other half of the proof).
--
-- The snapshot tells as long as nobody holds an old xid. When somebody does, perhaps in another
-- database or a forgotten prepared transaction, look_closer reads pg_locks: only transactions
-- that hold the writers' lock on job count. That costs a pass over the lock table; callers do it
-- seldom.
create or replace function writers_ended(
  p_horizon     bigint,
  p_look_closer boolean
)
  returns boolean
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
begin
  if pg_snapshot_xmin(pg_current_snapshot()) >= p_horizon::text::xid8 then
    return true;
  end if;
  if not p_look_closer then
    return false;
  end if;

  return not exists (
    select
      from pg_locks as writes
      join pg_locks as xact on xact.virtualtransaction = writes.virtualtransaction
     where writes.locktype = 'relation'
       and writes.database = (select d.oid from pg_database as d
                               where d.datname = current_database())
       and writes.relation = 'job'::regclass
       and writes.mode = 'RowExclusiveLock'
       and xact.locktype = 'transactionid'
       and xact.mode = 'ExclusiveLock'
       and age(xact.transactionid) > age((p_horizon & 4294967295)::text::xid)
  );
end;
$$;
