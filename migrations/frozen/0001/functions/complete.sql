-- complete(job_id, worker_id, token, result) -> job_verdict
--
-- Ends the job for good. The token decides, not the clock: a lapsed lease that nobody took over
-- still completes. A sealed job keeps the result that was sealed.
--
-- Locks:   the row, FOR UPDATE skip locked; it never waits.
-- Returns: ok; already when this token completed the job before, or the sweep healed what it
--          sealed; cancel_requested when a cancellation stands, and nothing changed; deferred
--          when somebody holds the row just now; lost when the token is not current.
-- Raises:  22023 for a bad argument; 40001 above READ COMMITTED, which means try again.
create or replace function complete(
  p_job_id    bigint,
  p_worker_id text,
  p_token     bigint,
  p_result    jsonb default null
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
  perform check_json('result', p_result, 1048576);

  select s.* into v_verdict
    from settle_jobs(p_worker_id, array[p_job_id], array[p_token], array['complete'],
                     p_results => array[p_result]) as s;
  return v_verdict;
end;
$$;
