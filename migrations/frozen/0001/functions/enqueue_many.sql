-- enqueue_many(jobs, notify) -> setof enqueued_many
--
-- Adds 1 to 10,000 jobs in one statement, in the caller's transaction. Each element of the JSON
-- array is an object with enqueue's arguments by name: queue and kind, and where they differ
-- from the defaults payload, priority, run_at, delay, max_attempts, dedup_key, timeout,
-- retry_base, retry_cap, meta. Times are ISO 8601 text, durations interval text.
--
-- Of several with one dedup key the first makes the job. Keys are taken in sorted order, so two
-- batches never deadlock.
--
-- Locks:   none but the jobs' own rows and the entries of their dedup keys.
-- Returns: (ordinal, job_id, created), by ordinal: the place in the array, from 1.
-- Raises:  22023 for a bad argument, naming the element; nothing is written then. 40001 as
--          enqueue.
create or replace function enqueue_many(
  p_jobs   jsonb,
  p_notify boolean default true
)
  returns setof enqueued_many
  language plpgsql
  volatile
  security definer
  set search_path from current
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set jit = off
as $$
declare
  v_jobs    new_job[] := array(select n from new_jobs(p_jobs) as n);
  v_now     timestamptz := due_clock();
  v_ids     bigint[];
  v_made    bigint[];
  v_created boolean[];
  v_job     record;
  v_one     enqueued;
  v_queue   text;
begin
  -- Numbered before they are inserted in the order of their keys: jobs due at one instant run
  -- in the order given.
  v_ids := array(select nextval('job_id_seq') from unnest(v_jobs));

  with made as (
    insert into job as j
           (id, queue, kind, payload, priority, next_attempt_at, max_attempts, token_limit,
            dedup_key, timeout, retry_base, retry_cap, meta, created_at)
           overriding system value
    select v_ids[n.ordinality], n.queue, n.kind, n.payload, n.priority,
           greatest(v_now, coalesce(n.run_at, v_now + n.delay)), n.max_attempts,
           10 * n.max_attempts + 100, stored_dedup_key(n.dedup_key), n.timeout, n.retry_base,
           n.retry_cap, n.meta, v_now
      from unnest(v_jobs) with ordinality as n
     order by n.queue, n.dedup_key nulls first, n.ordinality
        on conflict (queue, dedup_key) where dedup_key is not null do nothing
    returning j.id
  )
  select coalesce(array_agg(m.id), '{}') into v_made from made as m;

  if cardinality(v_made) < cardinality(v_ids) then
    v_created := array(select i.id = any (v_made)
                         from unnest(v_ids) with ordinality as i(id, ordinality)
                        order by i.ordinality);
    -- Their keys were taken. enqueue tells by whom, and makes the job if the key is free again.
    for v_job in
      select n.*
        from unnest(v_jobs) with ordinality as n
       where not v_created[n.ordinality]
       order by n.queue, n.dedup_key, n.ordinality
    loop
      v_one := enqueue(v_job.queue, v_job.kind, v_job.payload, v_job.priority, v_job.run_at,
                       v_job.delay, v_job.max_attempts, v_job.dedup_key, v_job.timeout,
                       v_job.retry_base, v_job.retry_cap, v_job.meta, p_notify);
      v_ids[v_job.ordinality] := v_one.job_id;
      v_created[v_job.ordinality] := v_one.created;
    end loop;
  end if;

  return query
  select i.ordinality::integer, i.id, coalesce(i.created, true)
    from unnest(v_ids, v_created) with ordinality as i(id, created, ordinality)
   order by i.ordinality;

  if coalesce(p_notify, true) then
    for v_queue in
      select distinct n.queue
        from unnest(v_jobs) as n
       where coalesce(n.run_at, v_now + n.delay, v_now) < v_now + poll_floor()
    loop
      perform notify_sleepers(v_queue);
    end loop;
  end if;
end;
$$;
