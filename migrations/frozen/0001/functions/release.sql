-- release(job_id, worker_id, token, started, delay) -> job_verdict
--
-- Gives the job back, due after delay. When it was not started the attempt is refunded; of a
-- lease that was taken over (reclaim) only if it is buffered, for its first owner may have
-- started it. When it was started the attempt stays spent, and with none left the job ends
-- failed. So does one that was given back until its token reached its limit. A job whose
-- cancellation was accepted ends cancelled.
--
-- Locks:   the row, FOR UPDATE skip locked; it never waits.
-- Returns: ok, with the status it led to; already when this token released before; sealed when
--          the outcome is sealed, and nothing changed; deferred, lost as for complete.
-- Raises:  22023 for a bad argument; 40001 above READ COMMITTED, which means try again.
create or replace function release(
  p_job_id    bigint,
  p_worker_id text,
  p_token     bigint,
  p_started   boolean,
  p_delay     interval default '0'
)
  returns job_verdict
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
declare
  v_verdict job_verdict;
begin
  perform check_lease_args(p_job_id, p_worker_id, p_token);
  if p_started is null then
    perform refuse('started is null', 'Say whether the job was started: true or false.');
  end if;
  perform check_span('delay', p_delay, '0', '3653 days');

  select s.* into v_verdict
    from settle_jobs(p_worker_id, array[p_job_id], array[p_token], array['release'],
                     p_delays => array[p_delay], p_started => array[p_started]) as s;
  return v_verdict;
end;
$$;
