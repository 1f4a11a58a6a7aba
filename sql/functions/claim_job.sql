-- claim_job(job_id, worker_id, lease_for) -> setof lease
--
-- Leases one candidate that was read before (next_eligible_job_id): the compare-and-swap in
-- which one of all who read it wins. Spends an attempt and mints a token, as claim does; the
-- lease is never buffered.
--
-- Locks:   the row, skip locked.
-- Returns: the lease, or no row when the job is not queued, not due, paused, or held by somebody
--          just now. The loser has spent nothing.
-- Raises:  22023 for a bad argument, TN006 outside READ COMMITTED.
create or replace function claim_job(
  p_job_id    bigint,
  p_worker_id text,
  p_lease_for interval default '30 seconds'
)
  returns setof lease
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
  v_now timestamptz;
begin
  perform check_isolation('claim_job');
  if p_job_id is null then
    perform refuse('job_id is null', 'Pass the id that next_eligible_job_id returned.');
  end if;
  perform check_name('worker_id', p_worker_id, 256);
  perform check_span('lease_for', p_lease_for, '100 milliseconds', '24 hours');

  perform pg_current_xact_id();
  v_now := clock();

  return query
  update job as j
     set status = 'running',
         worker_id = p_worker_id,
         token = j.token + 1,
         attempt = j.attempt + 1,
         claimed_at = v_now,
         lease_expires_at = date_trunc('milliseconds',
                                       least(v_now + p_lease_for, v_now + j.timeout))
   where j.ctid = any (array(
           select c.ctid
             from job as c
            where c.id = p_job_id
              -- As text: with stale statistics a scan of all that is queued looks cheap.
              and c.status::text = 'queued'
              and c.next_attempt_at <= v_now
              and not exists (select from queue as q
                               where q.queue = c.queue
                                 and q.paused_at is not null)
              for no key update of c skip locked))
  returning j.id, j.token, j.worker_id, j.lease_expires_at, j.queue, j.kind, j.payload,
            j.priority, j.attempt, j.max_attempts, j.timeout, j.buffered, j.solo, j.progress,
            j.meta, j.created_at, j.last_error;
end;
$$;
