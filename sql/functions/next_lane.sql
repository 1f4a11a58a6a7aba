-- next_lane(queue, lane, floors) -> integer (internal)
--
-- The first lane after the given one that this session has met or that holds a queued job; null
-- when there is none. Lanes not met are probed together, one index descent or two for each gap
-- between lanes that were: lanes are implied, never listed, so that a first enqueue touches no
-- shared row.
create or replace function next_lane(
  p_queue  text,
  p_lane   integer,
  p_floors bigint[]
)
  returns integer
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
  v_met   integer := p_lane + 1;
  v_found integer;
begin
  while v_met <= 20 and p_floors[4 + v_met] < 0 loop
    v_met := v_met + 1;
  end loop;

  if p_lane / 2 < (v_met - 1) / 2 then
    select 2 * j.priority + j.solo::integer + 1
      into v_found
      from job as j
     where j.status = 'queued'
       and j.queue = p_queue
       and (j.priority, j.solo) >= ((p_lane / 2)::smallint, p_lane % 2 = 1)
       -- No row of two for the end: before PostgreSQL 18 a scan reads on beyond it, through the
       -- whole lane that was met.
       and j.priority < (v_met - 1) / 2
     order by j.priority, j.solo
     limit 1;
    if found then
      return v_found;
    end if;
  end if;

  -- The lane before a solo lane is of the same priority.
  if v_met % 2 = 0 and v_met > p_lane + 1 then
    perform
      from job as j
     where j.status = 'queued'
       and j.queue = p_queue
       and j.priority = (v_met - 1) / 2
       and j.solo = false
     limit 1;
    if found then
      return v_met - 1;
    end if;
  end if;

  return case when v_met <= 20 then v_met end;
end;
$$;
