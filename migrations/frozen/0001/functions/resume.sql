-- resume(queue) -> queue_answer
--
-- Allows claims from a paused queue again, and wakes whoever sleeps on it.
--
-- Locks:   the queue's row. It waits, at most 2 s.
-- Returns: ok; already when it is not paused, also for one never heard of; deferred when the row
--          was held for 2 s.
-- Raises:  22023 for a bad name.
create or replace function resume(
  p_queue text
)
  returns queue_answer
  language plpgsql
  volatile
  security definer
  set search_path from current
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set jit = off
  set lock_timeout = '2s'
as $$
begin
  perform check_name('queue', p_queue, 128);
  -- A sleeper that looked before this commits must not settle before it: see due_clock.
  perform due_clock();

  update queue as q
     set paused_at = null
   where q.queue = p_queue
     and q.paused_at is not null;
  if not found then
    return row(p_queue, 'already', null, null)::queue_answer;
  end if;
  perform notify_sleepers(p_queue);
  return row(p_queue, 'ok', null, null)::queue_answer;
exception when lock_not_available then
  return row(p_queue, 'deferred', null, null)::queue_answer;
end;
$$;
