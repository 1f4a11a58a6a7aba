-- results(job_ids) -> setof job_result
--
-- What has come of 1 to 1,000 jobs: status and token, and for those that have ended the result,
-- or the error of the attempt that failed them. error_type is null when no handler reported one,
-- as for a lease that lapsed; message says what happened then. A job that is unknown, for it was
-- never committed or is past keeping, has no row. The token is that of the lease that ended the
-- job, so that a worker whose commit was not answered can tell its own end from another's.
--
-- Locks:  none. Live and finished jobs are read in one statement, so one that is just moving is
--         never missed.
-- Raises: 22023 for a bad argument.
create or replace function results(
  p_job_ids bigint[]
)
  returns setof job_result
  language plpgsql
  volatile
  security definer
  set search_path from current
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
  set jit = off
as $$
begin
  perform check_count('the number of jobs', cardinality(p_job_ids), 1000);

  return query
  select r.id, r.token, r.status, r.result, e.error_type,
         case when r.status = 'failed' then coalesce(e.message, r.last_error) end
    from (
      select j.id, j.token, j.status, null::jsonb as result, null::text as last_error
        from job as j
       where j.id = any (p_job_ids)
      union all
      select h.id, h.token, h.status, case when h.status = 'completed' then h.result end,
             h.last_error
        from job_history as h
       where h.id = any (p_job_ids)
    ) as r
    left join lateral (
      select a.error_type, a.message
        from attempt as a
       where a.job_id = r.id
         and a.token = r.token
         and a.verb = 'fail'
         and r.status = 'failed'
    ) as e on true;
end;
$$;
