-- try_wake(queues) -> boolean
--
-- As wake, for the transaction that has just enqueued with notify => false: its commit itself
-- then notifies. The lock that NOTIFY holds across the flush of such a commit is one for the
-- whole server, so no more than one transaction of an install does so at a time. After false,
-- call wake() once it is committed.
--
-- Locks:   an advisory one until the end of the transaction, tried and not waited for.
-- Returns: false when another transaction is about to notify just now; nothing was done then.
-- Raises:  22023 for a null array or a bad queue name.
create or replace function try_wake(
  p_queues text[]
)
  returns boolean
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
begin
  perform check_queues(p_queues);
  -- The key after those of wait_key.
  if not pg_try_advisory_xact_lock(install_key(), -34) then
    return false;
  end if;
  perform notify_sleepers(a.queue) from unnest(p_queues) as a(queue);
  return true;
end;
$$;
