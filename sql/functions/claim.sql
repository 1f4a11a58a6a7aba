-- claim(queues, worker_id, max_jobs, lease_for, solo) -> setof lease
--
-- Leases up to max_jobs due jobs to one worker: queues in the order given, priority 0 first, due
-- time, id. Spends an attempt of each and mints its token. The lease lasts lease_for (100 ms to
-- 24 h), or until the job's timeout if that is earlier.
--
-- A claim of more than one job marks the leases buffered: such a job may not have started when
-- its worker dies, so the sweep refunds the attempt and makes the job solo. A solo job is handed
-- out at most one per claim, unbuffered, and none with solo => false: pass that while the worker
-- has a solo job. So a job that kills its worker is soon charged alone.
--
-- Costs the same whatever waits, is delayed or has died: each lane is one range of one index,
-- entered at its floor (lane_floors).
--
-- Locks:   the rows leased, skip locked; callers never wait for each other.
-- Returns: the leases in claim order. Fewer than asked is not proof that there are no more.
-- Raises:  22023 for a bad argument, TN006 outside READ COMMITTED.
create or replace function claim(
  p_queues    text[],
  p_worker_id text,
  p_max_jobs  integer default 1,
  p_lease_for interval default '30 seconds',
  p_solo      boolean default true
)
  returns setof lease
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
  -- T may be noted only if this transaction had no xid before T was read.
  v_fresh  boolean := pg_current_xact_id_if_assigned() is null;
  v_t      timestamptz := clock();
  v_now    timestamptz;
  v_left   integer := p_max_jobs;
  v_take   integer;
  v_got    integer;
  v_solo   boolean := coalesce(p_solo, true);
  v_seen   text[] := '{}';
  v_queue  text;
  v_row    queue;
  v_floors bigint[];
  v_met    boolean;
  v_lane   integer;
begin
  perform check_isolation('claim'),
          check_count('the number of queues', cardinality(p_queues), 1000),
          check_name('worker_id', p_worker_id, 256),
          check_count('max_jobs', p_max_jobs, 1000),
          check_span('lease_for', p_lease_for, '100 milliseconds', '24 hours');

  perform pg_current_xact_id();
  -- Not T: a job due between the two may be claimed, and no floor may rest on this reading.
  v_now := clock();

  foreach v_queue in array p_queues loop
    exit when v_left = 0;
    if v_queue is null then
      perform refuse('a queue is null', 'Pass the names of queues.');
    end if;
    continue when v_queue = any (v_seen);
    v_seen := v_seen || v_queue;

    select q.* into v_row from queue as q where q.queue = v_queue;
    continue when v_row.paused_at is not null;

    v_floors := lane_floors(v_queue, v_row, case when v_fresh then v_t end);
    v_met := false;
    v_lane := 0;
    loop
      v_lane := next_lane(v_queue, v_lane, v_floors);
      exit when v_lane is null;
      if v_floors[4 + v_lane] < 0 then
        v_floors[4 + v_lane] := 0;
        v_met := true;
      end if;
      v_take := case when v_lane % 2 = 1 then v_left when v_solo then 1 else 0 end;
      continue when v_take = 0;

      return query
      with claimed as (
        update job as j
           set status = 'running',
               worker_id = p_worker_id,
               token = j.token + 1,
               attempt = j.attempt + 1,
               claimed_at = v_now,
               lease_expires_at = date_trunc('milliseconds',
                                             least(v_now + p_lease_for, v_now + j.timeout)),
               buffered = p_max_jobs > 1 and not j.solo
         -- An array, not IN: a join may run a limited subquery again for each row and lock
         -- more than the limit.
         where j.ctid = any (array(
                 select c.ctid
                   from job as c
                  where c.status = 'queued'
                    and c.queue = v_queue
                    and c.priority = (v_lane - 1) / 2
                    and c.solo = (v_lane % 2 = 0)
                    and c.next_attempt_at >= instant(v_floors[4 + v_lane])
                    and c.next_attempt_at <= v_now
                  order by c.next_attempt_at, c.id
                  limit v_take
                    for no key update skip locked))
        returning j.id, j.token, j.worker_id, j.lease_expires_at, j.queue, j.kind, j.payload,
                  j.priority, j.attempt, j.max_attempts, j.timeout, j.buffered, j.solo,
                  j.progress, j.meta, j.created_at, j.last_error, j.next_attempt_at
      )
      -- A TID scan returns rows in the order of the heap.
      select c.id, c.token, c.worker_id, c.lease_expires_at, c.queue, c.kind, c.payload,
             c.priority, c.attempt, c.max_attempts, c.timeout, c.buffered, c.solo, c.progress,
             c.meta, c.created_at, c.last_error
        from claimed as c
       order by c.next_attempt_at, c.id;
      get diagnostics v_got = row_count;

      v_left := v_left - v_got;
      if v_lane % 2 = 0 and v_got > 0 then
        v_solo := false;
      end if;
      exit when v_left = 0;
    end loop;

    -- A lane met is kept once T is noted; before that there is nothing to step over it with.
    if v_met and v_floors[2] > 0 then
      perform set_config(floor_setting(v_queue), v_floors::text, false);
    end if;
  end loop;
end;
$$;
