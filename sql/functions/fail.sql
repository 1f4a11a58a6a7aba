-- fail(job_id, worker_id, token, error_type, message, traceback, retryable, delay, cancel)
--   -> job_verdict
--
-- Reports a failed attempt. With attempts left and retryable the job is queued again, due after
-- delay (null: after backoff); otherwise it ends failed. A job whose cancellation was accepted
-- ends cancelled, and so does one with cancel, by which the handler gives up its own job. The
-- texts are cut to 256 bytes, 8 KiB and 32 KiB.
--
-- Locks:   the row, FOR UPDATE skip locked; it never waits.
-- Returns: ok, with the status it led to; already when this token failed before; sealed when the
--          outcome is sealed, and nothing changed; deferred, lost as for complete.
-- Raises:  22023 for a bad argument; 40001 above READ COMMITTED, which means try again.
create or replace function fail(
  p_job_id     bigint,
  p_worker_id  text,
  p_token      bigint,
  p_error_type text,
  p_message    text default '',
  p_traceback  text default null,
  p_retryable  boolean default true,
  p_delay      interval default null,
  p_cancel     boolean default false
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
  if p_delay is not null then
    perform check_span('delay', p_delay, '0', '3653 days');
  end if;

  select s.* into v_verdict
    from settle_jobs(
           p_worker_id, array[p_job_id], array[p_token], array['fail'],
           p_errors => array[jsonb_build_object('error_type', p_error_type,
                                                'message', p_message,
                                                'traceback', p_traceback,
                                                'retryable', p_retryable,
                                                'cancel', p_cancel)],
           p_delays => array[p_delay]) as s;
  return v_verdict;
end;
$$;
