-- pause(queue) -> queue_answer
--
-- Stops claims from a queue; running jobs go on. The queue need not have been heard of.
--
-- Locks:   the queue's row. It waits, at most 2 s.
-- Returns: ok; already when it is paused; deferred when the row was held for 2 s.
-- Raises:  22023 for a bad name.
create or replace function pause(
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
declare
  v_paused_at timestamptz;
begin
  perform check_name('queue', p_queue, 128);

  insert into queue as q (queue, paused_at)
  values (p_queue, clock())
      on conflict (queue) do update
     set paused_at = excluded.paused_at
   where q.paused_at is null
  returning q.paused_at into v_paused_at;
  if found then
    return row(p_queue, 'ok', v_paused_at, null)::queue_answer;
  end if;
  return row(p_queue, 'already',
             (select q.paused_at from queue as q where q.queue = p_queue), null)::queue_answer;
exception when lock_not_available then
  return row(p_queue, 'deferred', null, null)::queue_answer;
end;
$$;
