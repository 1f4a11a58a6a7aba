-- held(worker_id) -> setof held_lease
--
-- The leases that a worker has. After a reconnect a worker gives back those it does not know: the
-- reply to its claim was lost.
--
-- Locks:  none.
-- Raises: 22023 for a null worker_id.
create or replace function held(
  p_worker_id text
)
  returns setof held_lease
  language plpgsql
  volatile
  security definer
  set search_path from current
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set jit = off
as $$
begin
  if p_worker_id is null then
    perform refuse('worker_id is null', 'Pass the worker_id that claimed the jobs.');
  end if;

  return query
  select j.id, j.token, j.lease_expires_at
    from job as j
   where j.status = 'running'
     and j.worker_id = p_worker_id
   order by j.claimed_at, j.id;
end;
$$;
