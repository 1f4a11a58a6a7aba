-- notify_waiters(job_ids) -> void (internal)
--
-- Sends `d<job_id>` for those of these jobs, which have just ended, that somebody waits for.
-- Called once for all jobs that one statement ended, after it and in the same transaction: when
-- nobody waits for any job, it costs one test. A waiter that was not there yet waits for that
-- transaction's end before it relies on being told (wait_begin).
--
-- Sends none while the server's notification queue is more than half full: when it is full,
-- every commit that notifies fails.
create or replace function notify_waiters(
  p_job_ids bigint[]
)
  returns void
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
declare
  v_key integer;
begin
  if cardinality(p_job_ids) = 0
     or not somebody_sleeps(-1)
     or not (select i.notify from install as i)
     or pg_notification_queue_usage() > 0.5 then
    return;
  end if;

  for v_key in select distinct wait_key(a.job_id) from unnest(p_job_ids) as a(job_id) loop
    if somebody_sleeps(v_key) then
      perform pg_notify(channel(), 'd' || a.job_id)
         from unnest(p_job_ids) as a(job_id)
        where wait_key(a.job_id) = v_key;
    end if;
  end loop;
end;
$$;
