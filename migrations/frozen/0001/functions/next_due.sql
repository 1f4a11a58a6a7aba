-- next_due(queues) -> due
--
-- When the earliest queued job of these queues is due, and in how long by this clock; both null
-- when none waits or its queue is paused. A sleeper asks after it settled and after each
-- notification. An answer that is not in the future means that a claim skipped rows: somebody
-- holds them in a transaction that may yet roll back, so go on as if not settled.
--
-- Locks:  none.
-- Raises: 22023 for a bad argument.
create or replace function next_due(
  p_queues text[]
)
  returns due
  language plpgsql
  volatile
  security definer
  set search_path from current
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
  set jit = off
as $$
declare
  v_queue  text;
  v_row    queue;
  v_floors bigint[];
  v_lane   integer;
  v_first  timestamptz;
  v_due    due;
begin
  perform check_count('the number of queues', cardinality(p_queues), 1000);

  foreach v_queue in array p_queues loop
    select q.* into v_row from queue as q where q.queue = v_queue;
    continue when v_row.paused_at is not null;

    v_floors := lane_floors(v_queue, v_row, null);
    v_lane := 0;
    loop
      v_lane := next_lane(v_queue, v_lane, v_floors);
      exit when v_lane is null;

      select j.next_attempt_at
        into v_first
        from job as j
       where j.status = 'queued'
         and j.queue = v_queue
         and j.priority = (v_lane - 1) / 2
         and j.solo = (v_lane % 2 = 0)
         and j.next_attempt_at >= instant(greatest(v_floors[4 + v_lane], 0))
       order by j.next_attempt_at, j.id
       limit 1;
      v_due.due_at := least(v_due.due_at, v_first);
    end loop;
  end loop;

  v_due.due_in := v_due.due_at - clock();
  return v_due;
end;
$$;
