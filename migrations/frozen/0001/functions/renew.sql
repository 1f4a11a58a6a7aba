-- renew(worker_id, job_ids, tokens, lease_for) -> setof renewal
--
-- Extends 1 to 1,000 leases to lease_for from now, and sees their cancellations, in one
-- statement: no cancellation accepted before a renewal is missed by it. Never beyond the claim
-- plus the job's timeout. A lapsed lease that nobody took over is still its owner's: the token
-- decides, not the clock.
--
-- Changes no indexed column (HOT).
--
-- Locks:   the rows, skip locked, in id order. It never waits.
-- Returns: one row per lease, in no order: renewed; deferred when somebody holds the row just
--          now, though the token is current (lease_expires_at is then the present end: try
--          again); lost when the token is not current or the job unknown.
-- Raises:  22023 for a bad argument, TN006 outside READ COMMITTED.
create or replace function renew(
  p_worker_id text,
  p_job_ids   bigint[],
  p_tokens    bigint[],
  p_lease_for interval default '30 seconds'
)
  returns setof renewal
  language plpgsql
  volatile
  security definer
  set search_path from current
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
  set jit = off
as $$
declare
  v_now     timestamptz;
  v_renewed renewal[];
begin
  perform check_isolation('renew');
  perform check_leases(p_job_ids, p_tokens);
  perform check_span('lease_for', p_lease_for, '100 milliseconds', '24 hours');
  v_now := clock();

  with mine as materialized (
    select j.id
      from unnest(p_job_ids, p_tokens) as a(job_id, token)
      join job as j on j.id = a.job_id
     where j.token = a.token
       and j.worker_id = p_worker_id
     order by j.id
       for no key update of j skip locked
  ),
  renewed as (
    update job as j
       set lease_expires_at = date_trunc('milliseconds',
                                         least(v_now + p_lease_for, j.claimed_at + j.timeout))
      from mine as m
     where j.id = m.id
    returning j.id, j.token, j.lease_expires_at, j.cancel_requested
  )
  select coalesce(array_agg(row(r.id, r.token, 'renewed', r.lease_expires_at,
                                r.cancel_requested)::renewal), '{}')
    into v_renewed
    from renewed as r;

  return query select r.* from unnest(v_renewed) as r;
  if cardinality(v_renewed) = cardinality(p_job_ids) then
    return;
  end if;

  return query
  select a.job_id, a.token,
         case when j.id is null then 'lost' else 'deferred' end,
         j.lease_expires_at,
         coalesce(j.cancel_requested, false)
    from unnest(p_job_ids, p_tokens) as a(job_id, token)
    left join job as j
      on j.id = a.job_id
     and j.token = a.token
     and j.worker_id = p_worker_id
   where not exists (select from unnest(v_renewed) as r
                      where r.job_id = a.job_id and r.token = a.token);
end;
$$;
