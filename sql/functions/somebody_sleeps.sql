-- somebody_sleeps(key) -> boolean (internal)
--
-- Whether a session holds the shared advisory lock of a key: that of a queue (queue_key) when it
-- sleeps, of a job (wait_key) when it waits for the end of one. The lock is tried and given back
-- in one expression, so that a cancelled statement leaves nothing behind. It is not MVCC and dies
-- with its session. Another that tries at the same instant is taken for a sleeper; that costs a
-- needless notification.
create or replace function somebody_sleeps(
  p_key integer
)
  returns boolean
  language plpgsql
  volatile
  security invoker
as $$
declare
  v_install integer := install_key();
begin
  return case
    when pg_try_advisory_lock(v_install, p_key)
    then not pg_advisory_unlock(v_install, p_key)
    else true
  end;
end;
$$;
