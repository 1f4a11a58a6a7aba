-- new_jobs(jobs) -> setof new_job (internal)
--
-- The elements of enqueue_many's array with the defaults filled in, checked, in input order.
-- What few elements differ in is checked once for all that share it.
--
-- Raises: 22023, naming the first element of a kind that can never be right.
create or replace function new_jobs(
  p_jobs jsonb
)
  returns setof new_job
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
declare
  v_jobs    new_job[];
  v_job     record;
  v_message text;
  v_hint    text;
begin
  if coalesce(jsonb_typeof(p_jobs) <> 'array', true) then
    perform refuse('jobs is not a JSON array', 'Pass an array of objects.');
  end if;
  perform check_count('the number of jobs', jsonb_array_length(p_jobs), 10000);

  begin
    select array_agg(
             row(n.queue, n.kind, n.payload, coalesce(n.priority, 5), n.run_at, n.delay,
                 coalesce(n.max_attempts, 5), n.dedup_key, n.timeout, n.retry_base, n.retry_cap,
                 n.meta)::new_job
             order by a.ordinality)
      into v_jobs
      from jsonb_array_elements(p_jobs) with ordinality as a(job, ordinality),
           jsonb_populate_record(null::new_job, a.job) as n;
  exception when data_exception then
    get stacked diagnostics v_message = message_text;
    perform refuse(format('jobs: %s', v_message),
                   'Times are ISO 8601 text, durations interval text such as 90 seconds.');
  end;

  for v_job in
    select min(n.ordinality) as ordinality, n.queue, n.kind, null::jsonb as payload, n.priority,
           n.run_at, n.delay, n.max_attempts, null as dedup_key, n.timeout, n.retry_base,
           n.retry_cap, null::jsonb as meta
      from unnest(v_jobs) with ordinality as n
     group by n.queue, n.kind, n.priority, n.run_at, n.delay, n.max_attempts, n.timeout,
              n.retry_base, n.retry_cap
    union all
    -- No JSON of fewer than 130 bytes is too large or too deep.
    select n.ordinality, n.queue, n.kind, n.payload, n.priority, n.run_at, n.delay,
           n.max_attempts, n.dedup_key, n.timeout, n.retry_base, n.retry_cap, n.meta
      from unnest(v_jobs) with ordinality as n
     where octet_length(n.payload::text) >= 130
        or octet_length(n.meta::text) >= 130
        or octet_length(n.dedup_key) not between 1 and 512
     order by 1
  loop
    begin
      perform check_new_job(v_job.queue, v_job.kind, v_job.payload, v_job.priority, v_job.run_at,
                            v_job.delay, v_job.max_attempts, v_job.dedup_key, v_job.timeout,
                            v_job.retry_base, v_job.retry_cap, v_job.meta);
    exception when invalid_parameter_value then
      get stacked diagnostics v_message = message_text, v_hint = pg_exception_hint;
      perform refuse(format('jobs[%s]: %s', v_job.ordinality - 1, v_message), v_hint);
    end;
  end loop;

  return query select * from unnest(v_jobs);
end;
$$;
