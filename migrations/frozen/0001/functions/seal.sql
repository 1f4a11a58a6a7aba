-- seal(job_id, worker_id, token, result) -> job_verdict
--
-- Records the outcome before completion, the first of two commits: effects first, status second.
-- From here on a crash does not run the job again; the sweep completes it with this result. A
-- cancellation is refused from here on.
--
-- Locks:   the row, skip locked; it never waits.
-- Returns: ok; already when it is sealed under this token, or was and was healed (the first
--          result stays); cancel_requested when a cancellation stands, and nothing changed;
--          deferred, lost as for complete.
-- Raises:  22023 for a bad argument; 40001 above READ COMMITTED, which means try again.
create or replace function seal(
  p_job_id    bigint,
  p_worker_id text,
  p_token     bigint,
  p_result    jsonb default null
)
  returns job_verdict
  language plpgsql
  volatile
  security definer
  set search_path from current
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set jit = off
as $$
declare
  v_verdict text;
begin
  perform check_lease_args(p_job_id, p_worker_id, p_token);
  perform check_json('result', p_result, 1048576);

  with mine as materialized (
    select j.id, j.cancel_requested, j.sealed_at
      from job as j
     where j.id = p_job_id
       and j.token = p_token
       and j.worker_id = p_worker_id
       for no key update skip locked
  ),
  sealed as (
    update job as j
       set sealed_at = clock(),
           result = p_result
      from mine as m
     where j.id = m.id
       and not m.cancel_requested
       and m.sealed_at is null
  )
  select case
           when m.cancel_requested then 'cancel_requested'
           when m.sealed_at is not null then 'already'
           else 'ok'
         end
    into v_verdict
    from mine as m;
  if not found then
    return stale_verdict(p_job_id, p_worker_id, p_token, 'seal');
  end if;
  return row(p_job_id, p_token, v_verdict, 'running', null)::job_verdict;
end;
$$;
