-- lane_floors(queue, row, t) -> bigint[] (internal)
--
-- What this session knows about the lanes of a queue. Lane n of 1..20 is priority (n - 1) / 2,
-- solo when n is even. A floor is a proven lower bound of the due times in its lane: a scan
-- that starts there steps over the dead index entries before it, which a long transaction
-- anywhere keeps alive by the hundred thousand.
--
--   [1]  the queue's floor_generation
--   [2]  T, in microseconds since 1970: the instant being proved; 0 for none
--   [3]  the horizon of T (see writers_ended)
--   [4]  when writers_ended last looked closer in vain, which it does once a second at most
--   [5]  .. [24] the floor of lane 1 .. 20; 0 for no floor yet, -1 for a lane not met
--
-- Kept in a session setting: a row updated at the rate of claims would itself collect dead
-- versions. It is a hint. Read only when well-formed, of the present generation and in the past,
-- else replaced by the copy in the queue's row. Sessions that never claim twice lose nothing.
--
-- With t not null the floors are brought forward about every 100 ms: once the writers of T have
-- ended, a lane's floor becomes the earlier of T and its first queued row, and the next T is t.
-- Pass t only when it was read before this transaction had an xid; the horizon is then the xid
-- assigned here, above every xid assigned before t was read.
create or replace function lane_floors(
  p_queue text,
  p_row   queue,
  p_t     timestamptz
)
  returns bigint[]
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
  c_lanes      constant integer := 20;
  v_generation bigint := coalesce(p_row.floor_generation, 0);
  v_now        bigint := microseconds(coalesce(p_t, clock()));
  v_setting    text := current_setting(floor_setting(p_queue), true);
  v_floors     bigint[];
  v_first      timestamptz;
  v_closer     boolean;
begin
  begin
    v_floors := v_setting::bigint[];
    if array_dims(v_floors) is distinct from '[1:24]' or array_position(v_floors, null) is not null
       or v_floors[1] <> v_generation or v_now < any (v_floors[4:24]) or v_now < v_floors[2] then
      v_floors := null;
    end if;
  exception when data_exception then
    v_floors := null;  -- somebody's own text
  end;
  if v_floors is null then
    v_floors := array[v_generation, 0, 0, 0] || array_fill(-1::bigint, array[c_lanes]);
    v_floors := merged_floors(v_floors, p_row.floors, v_now);
  end if;

  if p_t is null then
    return v_floors;
  end if;

  if v_floors[2] > 0 then
    if v_now < v_floors[2] + 100000 then
      return v_floors;
    end if;

    v_closer := v_now >= v_floors[4] + 1000000;
    if not writers_ended(v_floors[3], v_closer) then
      if v_closer then
        v_floors[4] := v_now;
        perform set_config(floor_setting(p_queue), v_floors::text, false);
      end if;
      return v_floors;
    end if;

    v_floors := merged_floors(v_floors, p_row.floors, v_now);
    for v_lane in 1 .. c_lanes loop
      continue when v_floors[4 + v_lane] < 0;
      select j.next_attempt_at
        into v_first
        from job as j
       where j.status = 'queued'
         and j.queue = p_queue
         and j.priority = (v_lane - 1) / 2
         and j.solo = (v_lane % 2 = 0)
         and j.next_attempt_at >= instant(v_floors[4 + v_lane])
       order by j.next_attempt_at, j.id
       limit 1;
      v_floors[4 + v_lane] := greatest(v_floors[4 + v_lane],
                                     least(v_floors[2], microseconds(v_first)));
    end loop;

    if p_row.floors_published_at < p_t - interval '30 seconds' then
      perform publish_floors(p_queue, v_floors, p_t);
    end if;
  end if;

  v_floors[2] := v_now;
  v_floors[3] := pg_current_xact_id()::text::bigint;
  perform set_config(floor_setting(p_queue), v_floors::text, false);
  return v_floors;
end;
$$;
