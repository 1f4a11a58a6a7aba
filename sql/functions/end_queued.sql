-- end_queued(job_id, status) -> void (internal)
--
-- Moves a queued job, which the caller has locked, to the history under an end status, and tells
-- whoever waits for it.
create or replace function end_queued(
  p_job_id bigint,
  p_status job_status
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
begin
  with ended as (
    delete from job as j
     where j.id = p_job_id
       and j.status::text = 'queued'
    returning j.*
  )
  insert into job_history
         (id, token, token_limit, created_at, claimed_at, attempt, max_attempts, status,
          priority, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload,
          meta, progress, result, last_error, finished_at)
  select e.id, e.token, e.token_limit, e.created_at, e.claimed_at, e.attempt, e.max_attempts,
         p_status, e.priority, e.retry_base, e.retry_cap, e.timeout, e.queue, e.kind,
         e.worker_id, e.dedup_key, e.payload, e.meta, e.progress, e.result, e.last_error, clock()
    from ended as e;

  perform notify_waiters(array[p_job_id]);
end;
$$;
