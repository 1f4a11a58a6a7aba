-- retry(job_id, attempts) -> job_answer
--
-- Queues a failed or cancelled job again, due now, with 1 to 1,000 attempts more: same id, and
-- the token goes on from where it was, so that former owners stay refused. The cancellation, the
-- seal and the result are cleared; last_error and progress stay for the next attempt to see.
--
-- Locks:   the history row. It waits, at most 2 s.
-- Returns: ok; duplicate when another live job took the dedup key meanwhile, and refused for a
--          live or completed job: nothing changed; deferred when the row, or the dedup key, was
--          held for 2 s.
-- Raises:  22023 for a bad argument, TN004 for an unknown id; 40001 above READ COMMITTED.
create or replace function retry(
  p_job_id   bigint,
  p_attempts integer default 1
)
  returns job_answer
  language plpgsql
  volatile
  security definer
  set search_path from current
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set jit = off
  set lock_timeout = '2s'
as $$
declare
  v_job   job;
  v_queue text;
  v_now   timestamptz;
begin
  perform check_count('attempts', p_attempts, 1000);

  v_job := locked_job(p_job_id);
  if v_job.status in ('queued', 'running', 'completed') then
    return row(p_job_id, 'refused', v_job.status, null)::job_answer;
  end if;

  v_now := due_clock();
  with back as (
    delete from job_history as h
     where h.id = p_job_id
    returning h.*
  )
  insert into job as j
         (id, token, token_limit, created_at, attempt, max_attempts, priority, retry_base,
          retry_cap, timeout, queue, kind, dedup_key, payload, meta, progress, last_error,
          next_attempt_at)
         overriding system value
  select b.id, b.token, b.token_limit + 10 * (b.attempt + p_attempts) + 100, b.created_at,
         b.attempt, b.attempt + p_attempts, b.priority, b.retry_base, b.retry_cap, b.timeout,
         b.queue, b.kind, b.dedup_key, b.payload, b.meta, b.progress, b.last_error, v_now
    from back as b
  returning j.queue into v_queue;
  if not found then
    -- Another retry moved it while this one waited.
    return row(p_job_id, 'refused', (select j.status from job as j where j.id = p_job_id),
               null)::job_answer;
  end if;

  perform notify_sleepers(v_queue);
  return row(p_job_id, 'ok', 'queued', null)::job_answer;
exception
  when unique_violation then
    return row(p_job_id, 'duplicate', v_job.status, null)::job_answer;
  when lock_not_available then
    return row(p_job_id, 'deferred', v_job.status, holder_pid(p_job_id))::job_answer;
end;
$$;
