-- publish_floors(queue, floors, now) -> void (internal)
--
-- Copies a session's lane floors to the queue's row, for sessions to come and for lanes that
-- others have not met. One try: a row that somebody holds is left alone, and one that does not
-- exist is not made.
--
-- Locks: the queue's row, skip locked.
create or replace function publish_floors(
  p_queue  text,
  p_floors bigint[],
  p_now    timestamptz
)
  returns void
  language plpgsql
  volatile
  security definer
  set search_path from current
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set jit = off
as $$
declare
  v_pairs bigint[] := '{}';
begin
  for v_lane in 1 .. 20 loop
    if p_floors[4 + v_lane] >= 0 then
      v_pairs := v_pairs || array[v_lane, p_floors[4 + v_lane]];
    end if;
  end loop;

  with mine as materialized (
    select q.queue
      from queue as q
     where q.queue = p_queue
       and q.floor_generation = p_floors[1]
       for no key update skip locked
  )
  update queue as q
     set floors = v_pairs,
         floors_published_at = p_now
    from mine as m
   where q.queue = m.queue;
end;
$$;
