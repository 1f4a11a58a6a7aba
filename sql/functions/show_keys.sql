-- show_keys(keys) -> bigint (internal)
--
-- Takes the shared locks by which others see that this session sleeps or waits, and drops those
-- that it had; then notes the horizon. In this order: whoever looked before the locks were
-- taken has an xid below the horizon.
--
-- Returns: the horizon, or null when the locks could not be had; none are held then.
-- Raises:  TN003 when the transaction has an xid already.
create or replace function show_keys(
  p_keys integer[]
)
  returns bigint
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
declare
  v_key integer;
begin
  if pg_current_xact_id_if_assigned() is not null then
    raise exception using
      errcode = 'TN003',
      message = 'to be notified needs a transaction of its own, and this one has written',
      hint    = 'Call it in autocommit, on the listening connection.';
  end if;

  perform sleep_end();
  foreach v_key in array p_keys loop
    -- The test of whoever looks holds the lock for an instant.
    for v_try in 1 .. 5 loop
      exit when pg_try_advisory_lock_shared(install_key(), v_key);
      if v_try = 5 then
        perform sleep_end();
        return null;
      end if;
      perform pg_sleep(0.001 * v_try);
    end loop;
  end loop;

  return pg_current_xact_id()::text::bigint;
end;
$$;
