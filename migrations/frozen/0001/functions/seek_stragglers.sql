-- seek_stragglers() -> void (internal)
--
-- Looks for queued jobs that are due before their lane's published floor, which a stepped clock
-- or an edit by hand can leave there, and makes every session forget the floors of such a queue.
-- Floors are a hint: this is what keeps a wrong one from hiding a job for more than a minute or
-- so.
--
-- One pass at a time, at most once a minute and a twentieth of the time, per install.
--
-- Locks: the install row and the rows of the queues concerned, skip locked.
create or replace function seek_stragglers()
  returns void
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
  v_start  timestamptz := clock();
  v_row    queue;
  v_lane   integer;
  v_behind boolean;
begin
  perform
     from install as i
    -- A pass that lies in the future was stamped before the clock was set back.
    where i.stragglers_sought_at > v_start
       or i.stragglers_sought_at
          < v_start - greatest(interval '1 minute', 20 * i.stragglers_cost)
      for no key update skip locked;
  if not found then
    return;
  end if;

  for v_row in select q.* from queue as q where cardinality(q.floors) > 0 loop
    v_behind := false;
    for v_pair in 1 .. cardinality(v_row.floors) / 2 loop
      v_lane := v_row.floors[2 * v_pair - 1];
      v_behind := v_behind or exists (
        select
          from job as j
         where j.status = 'queued'
           and j.queue = v_row.queue
           and j.priority = (v_lane - 1) / 2
           and j.solo = (v_lane % 2 = 0)
           and j.next_attempt_at < instant(v_row.floors[2 * v_pair]));
    end loop;

    if v_behind then
      with mine as materialized (
        select q.queue from queue as q where q.queue = v_row.queue for no key update skip locked
      )
      update queue as q
         set floors = '{}',
             floor_generation = q.floor_generation + 1
        from mine as m
       where q.queue = m.queue;
      perform notify_sleepers(v_row.queue);
    end if;
  end loop;

  update install as i
     set stragglers_sought_at = v_start,
         stragglers_cost = clock() - v_start;
end;
$$;
