-- next_eligible_job_id(queues) -> bigint
--
-- The job that a claim would take next, or null: the half of a claim that carries no ownership.
-- Nothing is reserved; claim_job decides among all who read the same candidate.
--
-- Locks:  none.
-- Raises: 22023 for a bad argument.
create or replace function next_eligible_job_id(
  p_queues text[]
)
  returns bigint
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
  v_now    timestamptz := clock();
  v_queue  text;
  v_row    queue;
  v_floors bigint[];
  v_lane   integer;
  v_id     bigint;
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

      select j.id
        into v_id
        from job as j
       where j.status = 'queued'
         and j.queue = v_queue
         and j.priority = (v_lane - 1) / 2
         and j.solo = (v_lane % 2 = 0)
         and j.next_attempt_at >= instant(greatest(v_floors[4 + v_lane], 0))
         and j.next_attempt_at <= v_now
       order by j.next_attempt_at, j.id
       limit 1;
      if found then
        return v_id;
      end if;
    end loop;
  end loop;
  return null;
end;
$$;
