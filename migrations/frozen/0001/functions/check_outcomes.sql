-- check_outcomes(worker_id, job_ids, verbs, results, errors, delays, started) -> void (internal)
--
-- Raises: 22023 when an argument of settle can never be right.
create or replace function check_outcomes(
  p_worker_id text,
  p_job_ids   bigint[],
  p_verbs     text[],
  p_results   jsonb[],
  p_errors    jsonb[],
  p_delays    interval[],
  p_started   boolean[]
)
  returns void
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
declare
  v_jobs integer := cardinality(p_job_ids);
  v_bad  text;
begin
  if p_worker_id is null then
    perform refuse('worker_id is null', 'Pass the worker_id that claimed the jobs.');
  end if;

  if v_jobs is distinct from cardinality(p_verbs)
     or v_jobs <> coalesce(cardinality(p_results), v_jobs)
     or v_jobs <> coalesce(cardinality(p_errors), v_jobs)
     or v_jobs <> coalesce(cardinality(p_delays), v_jobs)
     or v_jobs <> coalesce(cardinality(p_started), v_jobs) then
    perform refuse(format('%s jobs are given, and an array of another length', v_jobs),
                   'Give each array one element for each job, or null for all.');
  end if;

  select coalesce(a.verb, 'null') into v_bad from unnest(p_verbs) as a(verb)
   where coalesce(a.verb not in ('complete', 'fail', 'release', 'acknowledge_cancel'), true)
   limit 1;
  if found then
    perform refuse(format('verb is %s', v_bad),
                   'Use complete, fail, release or acknowledge_cancel.');
  end if;

  select a.job_id into v_bad from unnest(p_job_ids) as a(job_id)
   group by a.job_id having count(*) > 1 limit 1;
  if found then
    perform refuse(format('job %s is given twice', v_bad), 'Settle each job once.');
  end if;

  perform check_json('result', a.result, 1048576)
     from unnest(p_results) as a(result);
  perform check_span('delay', a.delay, '0', '3653 days')
     from unnest(p_delays) as a(delay) where a.delay is not null;

  select a.error into v_bad from unnest(p_errors) as a(error)
   where jsonb_typeof(a.error) <> 'object'
      or jsonb_typeof(a.error -> 'retryable') not in ('boolean', 'null')
      or jsonb_typeof(a.error -> 'cancel') not in ('boolean', 'null')
   limit 1;
  if found then
    perform refuse(format('error %s is not an error object', left(v_bad, 100)),
                   'Use {"error_type": text, "message": text, "traceback": text, '
                   '"retryable": boolean, "cancel": boolean}.');
  end if;
end;
$$;
