-- reclaim(job_id, worker_id, token, lease_expires_at, new_worker_id, lease_for) -> setof lease
--
-- Takes one lapsed lease over from the worker that let it lapse, for deciding about the job: new
-- token, same attempt, timeout started anew. Whoever wants the job run settles it back to
-- queued, so a handoff never runs a job for free. The exact prior owner, token and instant are
-- pinned (lapsed), and that the instant is still past: a renewal in between moves it and wins.
--
-- Writes the lapsed lease's attempt row, as lost. A cancellation, a seal, buffered and solo stay.
--
-- Locks:   the row, skip locked; it never waits.
-- Returns: the lease, or no row when anything is not as pinned or somebody holds the row.
-- Raises:  22023 for a bad argument, TN006 outside READ COMMITTED.
create or replace function reclaim(
  p_job_id           bigint,
  p_worker_id        text,
  p_token            bigint,
  p_lease_expires_at timestamptz,
  p_new_worker_id    text,
  p_lease_for        interval default '30 seconds'
)
  returns setof lease
  language plpgsql
  volatile
  security definer
  set search_path from current
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
  set jit = off
as $$
declare
  v_now timestamptz;
begin
  perform check_isolation('reclaim');
  perform check_lease_args(p_job_id, p_worker_id, p_token);
  if p_lease_expires_at is null then
    perform refuse('lease_expires_at is null', 'Pass it as lapsed returned it.');
  end if;
  perform check_name('new_worker_id', p_new_worker_id, 256);
  perform check_span('lease_for', p_lease_for, '100 milliseconds', '24 hours');

  perform pg_current_xact_id();
  v_now := clock();

  return query
  with mine as materialized (
    select j.id, j.worker_id, j.token, j.claimed_at, j.attempt
      from job as j
     where j.id = p_job_id
       and j.token = p_token
       and j.worker_id = p_worker_id
       and j.lease_expires_at = p_lease_expires_at
       and j.lease_expires_at <= v_now
       for no key update skip locked
  ),
  noted as (
    insert into attempt
           (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome)
    select m.id, m.token, m.claimed_at, v_now, m.attempt, m.worker_id, 'reclaim', 'lost'
      from mine as m
  )
  update job as j
     set token = j.token + 1,
         worker_id = p_new_worker_id,
         claimed_at = v_now,
         reclaimed = true,
         lease_expires_at = date_trunc('milliseconds',
                                       least(v_now + p_lease_for, v_now + j.timeout))
    from mine as m
   where j.id = m.id
  returning j.id, j.token, j.worker_id, j.lease_expires_at, j.queue, j.kind, j.payload,
            j.priority, j.attempt, j.max_attempts, j.timeout, j.buffered, j.solo, j.progress,
            j.meta, j.created_at, j.last_error;
end;
$$;
