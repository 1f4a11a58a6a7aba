-- stale_verdict(job_id, worker_id, token, verb) -> job_verdict (internal)
--
-- What to answer a worker whose call changed nothing: deferred when the token is current, so
-- somebody held the row; already when this token made this very call before, or its sealed job
-- was healed; lost otherwise, also for an unknown job. Read after the guarded statement, live
-- and finished rows in one statement, for rows move from one to the other.
create or replace function stale_verdict(
  p_job_id    bigint,
  p_worker_id text,
  p_token     bigint,
  p_verb      text
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
  v_status    job_status;
  v_due       timestamptz;
  v_is_owners boolean;
  v_past      attempt;
  v_verdict   text := 'lost';
begin
  select r.status, r.next_attempt_at,
         coalesce(r.token = p_token and r.worker_id = p_worker_id, false)
    into v_status, v_due, v_is_owners
    from (
      select j.status, j.token, j.worker_id,
             case when j.status::text = 'queued' then j.next_attempt_at end as next_attempt_at
        from job as j where j.id = p_job_id
      union all
      select h.status, h.token, h.worker_id, null
        from job_history as h where h.id = p_job_id
    ) as r;

  select a.* into v_past
    from attempt as a
   where a.job_id = p_job_id
     and a.token = p_token
     and a.worker_id = p_worker_id;

  if v_status = 'running' and v_is_owners then
    v_verdict := 'deferred';
  elsif v_past.verb = p_verb
     or (v_past.outcome = 'healed' and p_verb in ('complete', 'seal'))
     or (v_status = 'completed' and v_is_owners and p_verb = 'complete') then
    v_verdict := 'already';
  end if;
  return row(p_job_id, p_token, v_verdict, v_status,
             case when v_verdict = 'already' then v_due end)::job_verdict;
end;
$$;
