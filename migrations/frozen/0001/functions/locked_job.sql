-- locked_job(job_id) -> job (internal)
--
-- The live row of a job, locked FOR UPDATE, after waiting as long as the caller's lock_timeout
-- allows. Of a finished job the status alone, the rest null.
--
-- Raises: 22023 for a null id, TN004 when the job is neither live nor in the history.
create or replace function locked_job(
  p_job_id bigint
)
  returns job
  language plpgsql
  volatile
  security definer
  set search_path from current
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set jit = off
as $$
declare
  v_job  job;
  v_live boolean;
begin
  if p_job_id is null then
    perform refuse('job_id is null', 'Pass the id of a job.');
  end if;

  loop
    select j.* into v_job from job as j where j.id = p_job_id for update;
    exit when found;

    -- Rows move between the two tables, so both are read in one statement.
    select r.live, r.status
      into v_live, v_job.status
      from (select true as live, j.status from job as j where j.id = p_job_id
            union all
            select false, h.status from job_history as h where h.id = p_job_id) as r
     limit 1;
    if not found then
      raise exception using
        errcode = 'TN004',
        message = format('job %s is unknown', p_job_id),
        hint    = 'Check the id; finished jobs are kept for a limited time.';
    end if;
    exit when not v_live;
  end loop;
  return v_job;
end;
$$;
