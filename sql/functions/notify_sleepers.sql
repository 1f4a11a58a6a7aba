-- notify_sleepers(queue) -> void (internal)
--
-- Sends one notification if somebody sleeps on the queue, and none otherwise: NOTIFY takes an
-- instance-wide lock at commit, across the flush. Called after the write that made a due time
-- earlier, in the same transaction; a sleeper that was not asleep yet waits for that
-- transaction's end before it sleeps (sleep_begin).
--
-- Sends none while the server's notification queue is more than half full: when it is full,
-- every commit that notifies fails.
create or replace function notify_sleepers(
  p_queue text
)
  returns void
  language plpgsql
  volatile
  security invoker
as $$
begin
  if (select i.notify from install as i)
     and (somebody_sleeps(queue_key(p_queue)) or somebody_sleeps(0))
     and pg_notification_queue_usage() <= 0.5 then
    perform pg_notify(channel(), 'q' || queue_key(p_queue));
  end if;
end;
$$;
