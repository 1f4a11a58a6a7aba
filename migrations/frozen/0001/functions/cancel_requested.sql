-- cancel_requested(job_id) -> boolean
--
-- Whether the cancellation of a running job was accepted; false for any other job, known or not.
-- Read from the row at each call: a cancellation is never carried on a lease.
--
-- Raises: 22023 for a null id.
create or replace function cancel_requested(
  p_job_id bigint
)
  returns boolean
  language plpgsql
  volatile
  security definer
  set search_path from current
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set jit = off
as $$
begin
  if p_job_id is null then
    perform refuse('job_id is null', 'Pass the id of a job.');
  end if;
  return coalesce((select j.cancel_requested from job as j where j.id = p_job_id), false);
end;
$$;
