-- due_clock() -> timestamptz (internal)
--
-- The instant from which a due time may be written. Every function that writes one calls this
-- first, and stores none earlier than the answer. The order is the proof behind lane floors
-- and sleeping (claim, sleep_begin): a writer that could still show a job due before an instant
-- T has the table lock and an xid older than one assigned after T was read, so once those have
-- ended, nothing due before T can appear.
--
--   1. the table lock, so that the writer is seen in pg_locks before it has an xid;
--   2. the xid, so that it is older than any noted after the clock is read;
--   3. the clock.
--
-- Locks: job in row exclusive mode, as its UPDATE or INSERT would, to the transaction's end.
create or replace function due_clock()
  returns timestamptz
  language plpgsql
  volatile
  security invoker
as $$
begin
  lock table job in row exclusive mode;
  perform pg_current_xact_id();
  return clock();
end;
$$;
