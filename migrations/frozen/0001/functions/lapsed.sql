-- lapsed(limit) -> setof lapsed_lease
--
-- Up to limit (1 to 10,000) leases whose time is past, oldest claim first: a read, not a claim.
-- Each row pins its lease exactly; pass it to reclaim, which a renewal in between defeats.
--
-- Locks:  none.
-- Raises: 22023 for a bad limit.
create or replace function lapsed(
  p_limit integer default 100
)
  returns setof lapsed_lease
  language plpgsql
  volatile
  security definer
  set search_path from current
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set jit = off
as $$
declare
  v_now timestamptz := clock();
begin
  perform check_count('limit', p_limit, 10000);

  return query
  select j.id, j.worker_id, j.token, j.lease_expires_at
    from job as j
   where j.status = 'running'
     and j.lease_expires_at <= v_now
   order by j.claimed_at, j.id
   limit p_limit;
end;
$$;
