-- acknowledge_cancel(job_id, worker_id, token) -> job_verdict
--
-- Ends a running job whose cancellation was accepted.
--
-- Locks:   the row, FOR UPDATE skip locked; it never waits.
-- Returns: ok; already when this token acknowledged before; not_requested when nobody asked, and
--          sealed when the outcome is sealed: nothing changed; deferred, lost as for complete.
-- Raises:  22023 for a bad argument; 40001 above READ COMMITTED, which means try again.
create or replace function acknowledge_cancel(
  p_job_id    bigint,
  p_worker_id text,
  p_token     bigint
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

  select s.* into v_verdict
    from settle_jobs(p_worker_id, array[p_job_id], array[p_token],
                     array['acknowledge_cancel']) as s;
  return v_verdict;
end;
$$;
