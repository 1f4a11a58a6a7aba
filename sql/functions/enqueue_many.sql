-- enqueue_many(jobs, notify, shared) -> setof enqueued_many
--
-- Adds 1 to 10,000 jobs in one statement, in the caller's transaction. Each element of the JSON
-- array is an object with enqueue's arguments by name: queue and kind, and where they differ
-- from the defaults payload, priority, run_at, delay, max_attempts, dedup_key, timeout,
-- retry_base, retry_cap, meta. Times are ISO 8601 text, durations interval text. What an element
-- does not name it takes from shared, an object of the same kind.
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
  p_notify boolean default true,
  p_shared jsonb default null
)
  returns setof enqueued_many
  language plpgsql
  volatile
  security definer
  set search_path from current
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
  set jit = off
as $$
declare
  v_keyed  boolean := check_new_jobs(p_jobs, p_shared);
  v_shared new_job := jsonb_populate_record(null::new_job, p_shared);
  v_now    timestamptz := due_clock();
  v_new    bigint[];
  v_ids    bigint[];
  v_made   bigint;
  v_queue  text;
begin
  -- Numbered before they are inserted, where there are keys in their order: jobs due at one
  -- instant run in the order given.
  v_new := array(select nextval('job_id_seq')
                   from generate_series(1, jsonb_array_length(p_jobs)));

  if not v_keyed then
    -- The same without a conflict, for which each row costs half as much again.
    insert into job
           (id, queue, kind, payload, priority, next_attempt_at, max_attempts, token_limit,
            timeout, retry_base, retry_cap, meta, created_at)
           overriding system value
    select v_new[n.ordinality], n.queue, n.kind, n.payload, coalesce(n.priority, 5),
           greatest(v_now, coalesce(n.run_at, v_now + n.delay)), coalesce(n.max_attempts, 5),
           10 * coalesce(n.max_attempts, 5) + 100, n.timeout, n.retry_base, n.retry_cap, n.meta,
           v_now
      from jsonb_populate_recordset(v_shared, p_jobs) with ordinality as n;
    v_ids := v_new;
  end if;

  while v_keyed loop
    begin
      insert into job as j
             (id, queue, kind, payload, priority, next_attempt_at, max_attempts, token_limit,
              dedup_key, timeout, retry_base, retry_cap, meta, created_at)
             overriding system value
      select v_new[n.ordinality], n.queue, n.kind, n.payload, coalesce(n.priority, 5),
             greatest(v_now, coalesce(n.run_at, v_now + n.delay)), coalesce(n.max_attempts, 5),
             10 * coalesce(n.max_attempts, 5) + 100, stored_dedup_key(n.dedup_key), n.timeout,
             n.retry_base, n.retry_cap, n.meta, v_now
        from jsonb_populate_recordset(v_shared, p_jobs) with ordinality as n
       order by n.queue, n.dedup_key nulls first, n.ordinality
          on conflict (queue, dedup_key) where dedup_key is not null do nothing;
      get diagnostics v_made = row_count;
      v_ids := v_new;
      exit when v_made = cardinality(v_new);

      select array_agg(case when n.dedup_key is null then v_new[n.ordinality] else j.id end
                       order by n.ordinality)
        into v_ids
        from jsonb_populate_recordset(v_shared, p_jobs) with ordinality as n
        left join job as j
          on j.queue = n.queue
         and j.dedup_key = stored_dedup_key(n.dedup_key);
      exit when array_position(v_ids, null) is null;

      -- A job that had one of the keys ended in between. Taking it now, after later ones, could
      -- deadlock with another batch: let go of all, and take them again in order.
      raise no_data_found;
    exception when no_data_found then
      null;
    end;
  end loop;

  return query
  select i.ordinality::integer, i.id, i.id = v_new[i.ordinality]
    from unnest(v_ids) with ordinality as i(id, ordinality)
   order by i.ordinality;

  if coalesce(p_notify, true) then
    for v_queue in
      select distinct n.queue
        from jsonb_populate_recordset(v_shared, p_jobs) with ordinality as n
       where v_ids[n.ordinality] = v_new[n.ordinality]
         and coalesce(n.run_at, v_now + n.delay, v_now) < v_now + poll_floor()
    loop
      perform notify_sleepers(v_queue);
    end loop;
  end if;
end;
$$;
