-- update_owned(job_id, worker_id, token, progress, lease_for, require_cancel_not_requested)
--   -> job_verdict
--
-- Notes how far a running job has come (null keeps what was noted; a later attempt is shown it),
-- and extends the lease to lease_for from now where that is given (100 ms to 24 h, never beyond
-- the timeout). With require_cancel_not_requested a standing cancellation refuses it.
--
-- Locks:   the row, skip locked; it never waits. In a transaction left open it holds the row:
--          renewals are answered deferred until the end.
-- Returns: ok; cancel_requested, and nothing changed; deferred, lost as for complete.
-- Raises:  22023 for a bad argument; 40001 above READ COMMITTED, which means try again.
create or replace function update_owned(
  p_job_id                       bigint,
  p_worker_id                    text,
  p_token                        bigint,
  p_progress                     jsonb default null,
  p_lease_for                    interval default null,
  p_require_cancel_not_requested boolean default true
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
  v_now     timestamptz := clock();
  v_refused boolean;
begin
  perform check_lease_args(p_job_id, p_worker_id, p_token);
  perform check_json('progress', p_progress, 16384);
  if p_lease_for is not null then
    perform check_span('lease_for', p_lease_for, '100 milliseconds', '24 hours');
  end if;

  with mine as materialized (
    select j.id,
           j.cancel_requested and coalesce(p_require_cancel_not_requested, true) as refused
      from job as j
     where j.id = p_job_id
       and j.token = p_token
       and j.worker_id = p_worker_id
       for no key update skip locked
  ),
  updated as (
    update job as j
       set progress = coalesce(p_progress, j.progress),
           lease_expires_at = coalesce(
             date_trunc('milliseconds', least(v_now + p_lease_for,
                                              case when p_lease_for is not null
                                                   then j.claimed_at + j.timeout end)),
             j.lease_expires_at)
      from mine as m
     where j.id = m.id
       and not m.refused
  )
  select m.refused into v_refused from mine as m;
  if not found then
    return stale_verdict(p_job_id, p_worker_id, p_token, 'update_owned');
  end if;
  return row(p_job_id, p_token, case when v_refused then 'cancel_requested' else 'ok' end,
             'running', null)::job_verdict;
end;
$$;
