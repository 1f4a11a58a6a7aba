-- enqueue(queue, kind, payload, priority, run_at, delay, max_attempts, dedup_key, timeout,
--         retry_base, retry_cap, meta, notify) -> enqueued
--
-- Adds one job in the caller's transaction, under any isolation level, and never commits it.
--
-- priority is 0 (first) to 9, strict inside a queue. The job is due at run_at or after delay, at
-- most ten years ahead; a run_at in the past becomes now. While a live job (queued or running)
-- of the queue has dedup_key, the answer is that job's id and created is false; a second caller
-- waits for the first one's transaction to end, so a rollback there loses nothing here. timeout
-- bounds one attempt from its claim on. meta travels with the job for tracing and the like.
--
-- Wakes a sleeper when the job is due within the poll floor, unless notify is false; pass false
-- and call wake() after the commit where many enqueue at once.
--
-- Locks:  none but the job's own row; with dedup_key also its entry in the unique index.
-- Raises: 22023 for a bad argument; 40001 above READ COMMITTED when the dedup key is taken by a
--         job that this transaction cannot see.
create or replace function enqueue(
  p_queue        text,
  p_kind         text,
  p_payload      jsonb default null,
  p_priority     integer default 5,
  p_run_at       timestamptz default null,
  p_delay        interval default null,
  p_max_attempts integer default 5,
  p_dedup_key    text default null,
  p_timeout      interval default null,
  p_retry_base   interval default null,
  p_retry_cap    interval default null,
  p_meta         jsonb default null,
  p_notify       boolean default true
)
  returns enqueued
  language plpgsql
  volatile
  security definer
  set search_path from current
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set jit = off
as $$
declare
  v_now      timestamptz;
  v_due      timestamptz;
  v_key      text;
  v_enqueued enqueued;
begin
  perform check_new_job(p_queue, p_kind, p_payload, p_priority, p_run_at, p_delay, p_max_attempts,
                        p_dedup_key, p_timeout, p_retry_base, p_retry_cap, p_meta);

  v_now := due_clock();
  v_due := greatest(v_now, coalesce(p_run_at, v_now + p_delay));
  v_key := stored_dedup_key(p_dedup_key);
  loop
    insert into job as j
           (queue, kind, payload, priority, next_attempt_at, max_attempts, token_limit, dedup_key,
            timeout, retry_base, retry_cap, meta, created_at)
    values (p_queue, p_kind, p_payload, p_priority, v_due, p_max_attempts,
            10 * p_max_attempts + 100, v_key, p_timeout, p_retry_base, p_retry_cap, p_meta, v_now)
        on conflict (queue, dedup_key) where dedup_key is not null do nothing
    returning j.id, true into v_enqueued;
    exit when found;

    select j.id, false
      into v_enqueued
      from job as j
     where j.queue = p_queue
       and j.dedup_key = v_key;
    exit when found;
    -- The job with the key ended in between: the key is free.
  end loop;

  if coalesce(p_notify, true) and v_enqueued.created and v_due < v_now + poll_floor() then
    perform notify_sleepers(p_queue);
  end if;
  return v_enqueued;
end;
$$;
