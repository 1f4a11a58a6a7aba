-- sleep_end() -> void
--
-- Lets go of the locks of sleep_begin, so that producers need not notify a worker that is awake,
-- or of wait_begin. Does nothing when there are none. The end of the session has the same effect.
create or replace function sleep_end()
  returns void
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
declare
  v_key integer;
begin
  for v_key in
    select l.objid::bigint::bit(32)::integer
      from pg_locks as l
     where l.locktype = 'advisory'
       and l.pid = pg_backend_pid()
       and l.database = (select d.oid from pg_database as d where d.datname = current_database())
       and l.classid = 'job'::regclass::oid
       and l.objsubid = 2
       and l.mode = 'ShareLock'
  loop
    perform pg_advisory_unlock_shared(install_key(), v_key);
  end loop;
end;
$$;
