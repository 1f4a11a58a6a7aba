-- guard(job_id, worker_id, token, require_cancel_not_requested, lease_for) -> void
--
-- Makes the caller's own writes subject to the lease: from here to the end of the caller's
-- transaction no reclaim, sweep, cancel or second guard can come between this check and the
-- commit. One UPDATE, whose WHERE is the whole test, holds the row; it extends the lease to
-- lease_for from now (100 ms to 24 h), never beyond the timeout, never shortening it.
--
-- The first statement of its transaction, outside any savepoint: ROLLBACK TO would let go of the
-- row. The transaction is ended by the server when it idles for longer than lease_for, so that
-- a client that vanished frees the job. Prove ownership again at the end, by completing the job
-- as the last statement.
--
-- Locks:  the row, as FOR NO KEY UPDATE does. It waits, at most 2 s.
-- Raises: TN001 when the lease is lost, TN002 when a cancellation stands and
--         require_cancel_not_requested, TN005 when somebody held the row for 2 s, 22023 for a
--         bad argument, 40001 above READ COMMITTED. The transaction is void then: that is the
--         purpose.
create or replace function guard(
  p_job_id                       bigint,
  p_worker_id                    text,
  p_token                        bigint,
  p_require_cancel_not_requested boolean default true,
  p_lease_for                    interval default '30 seconds'
)
  returns void
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
  v_require boolean := coalesce(p_require_cancel_not_requested, true);
  v_now     timestamptz := clock();
  v_idle    bigint;
begin
  perform check_lease_args(p_job_id, p_worker_id, p_token);
  perform check_span('lease_for', p_lease_for, '100 milliseconds', '24 hours');

  begin
    update job as j
       set lease_expires_at = greatest(
             j.lease_expires_at,
             date_trunc('milliseconds', least(v_now + p_lease_for, j.claimed_at + j.timeout)))
     where j.id = p_job_id
       and j.token = p_token
       and j.worker_id = p_worker_id
       and not (j.cancel_requested and v_require);
  exception when lock_not_available then
    raise exception using
      errcode = 'TN005',
      message = format('job %s is held by another transaction', p_job_id),
      hint    = 'Try again, in a new transaction.';
  end;

  if not found then
    if exists (select from job as j
                where j.id = p_job_id
                  and j.token = p_token
                  and j.worker_id = p_worker_id
                  and j.cancel_requested) then
      raise exception using
        errcode = 'TN002',
        message = format('the cancellation of job %s was requested', p_job_id),
        hint    = 'Stop, and call acknowledge_cancel.';
    end if;
    raise exception using
      errcode = 'TN001',
      message = format('lease %s on job %s is lost', p_token, p_job_id),
      hint    = 'Discard the work: a later lease has the job, or it has ended.';
  end if;

  v_idle := (extract(epoch from current_setting('idle_in_transaction_session_timeout')::interval)
             * 1000)::bigint;
  if v_idle = 0 or v_idle > extract(epoch from p_lease_for) * 1000 then
    perform set_config('idle_in_transaction_session_timeout',
                       ceil(extract(epoch from p_lease_for) * 1000)::text, true);
  end if;
end;
$$;
