-- cancel(job_id) -> job_answer
--
-- Cancels a queued job at once, and a running one by request: its worker's next renewal sees it,
-- and a listening worker is notified. An accepted cancellation is never undone by a retry of
-- the attempt, a release, a lapse or a racing completion.
--
-- Locks:   the row. It waits, at most 2 s.
-- Returns: ok, with status cancelled, or running for a request; already when the job is cancelled
--          or was requested to be; sealed when a running job's outcome is sealed, and refused
--          when the job has completed or failed: nothing changed; deferred when the row was held
--          for 2 s, so that the cancellation was not accepted, with the holder's pid where it
--          can be known.
-- Raises:  22023 for a null id, TN004 for an unknown one; 40001 above READ COMMITTED.
create or replace function cancel(
  p_job_id bigint
)
  returns job_answer
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
  v_job job;
begin
  begin
    v_job := locked_job(p_job_id);
  exception when lock_not_available then
    return row(p_job_id, 'deferred', null, holder_pid(p_job_id))::job_answer;
  end;

  if v_job.id is null then
    return row(p_job_id, case when v_job.status = 'cancelled' then 'already' else 'refused' end,
               v_job.status, null)::job_answer;
  elsif v_job.status = 'queued' then
    perform end_queued(p_job_id, 'cancelled');
    return row(p_job_id, 'ok', 'cancelled', null)::job_answer;
  elsif v_job.sealed_at is not null then
    return row(p_job_id, 'sealed', 'running', null)::job_answer;
  elsif v_job.cancel_requested then
    return row(p_job_id, 'already', 'running', null)::job_answer;
  end if;

  update job as j set cancel_requested = true where j.id = p_job_id;
  if (select i.notify from install as i) and pg_notification_queue_usage() <= 0.5 then
    perform pg_notify(channel(), 'c' || p_job_id);
  end if;
  return row(p_job_id, 'ok', 'running', null)::job_answer;
end;
$$;
