-- sleep_begin(queues) -> bigint
--
-- The first step of sleeping without polling, on a connection that has LISTENed on channel()
-- already and is used for nothing else. Takes the shared locks by which producers see that
-- somebody sleeps, then notes a horizon. After it:
--
--   1. claim again, with a growing pause, until sleep_settled(horizon);
--   2. claim once more, in a statement begun after that answer;
--   3. only if that returned nothing, wait for a notification, next_due or the poll floor.
--
-- A producer that looked for sleepers before the locks were taken has an xid below the horizon;
-- once those have ended their jobs are visible, so the last claim finds them. A producer that
-- looks later sees the lock and notifies.
--
-- Locks:   advisory session locks, shared; those of an earlier call are dropped first.
-- Returns: the horizon, or null when the locks could not be had: poll instead.
-- Raises:  22023 for a bad argument; TN003 when the transaction has an xid already, for the
--          horizon must be assigned after the locks were taken.
create or replace function sleep_begin(
  p_queues text[]
)
  returns bigint
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
begin
  perform check_count('the number of queues', cardinality(p_queues), 1000);
  return show_keys(sleep_keys(p_queues));
end;
$$;
