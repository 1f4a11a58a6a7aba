-- trim_attempts(job_id) -> void (internal)
--
-- Keeps the last 20 attempts of a job.
create or replace function trim_attempts(
  p_job_id bigint
)
  returns void
  language plpgsql
  volatile
  security definer
  set search_path from current
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
  set jit = off
as $$
begin
  delete from attempt as a
   where a.job_id = p_job_id
     and a.token <= (select b.token
                       from attempt as b
                      where b.job_id = p_job_id
                      order by b.token desc
                     offset 20
                      limit 1);
end;
$$;
