-- check_new_jobs(jobs, shared) -> boolean (internal)
--
-- Checks the arguments of enqueue_many, and says whether a job has a dedup key. What few jobs
-- differ in is checked once for all that have it in common.
--
-- Raises: 22023, naming the first element of a kind that can never be right.
create or replace function check_new_jobs(
  p_jobs   jsonb,
  p_shared jsonb
)
  returns boolean
  language plpgsql
  volatile
  security invoker
as $$
declare
  v_shared   new_job;
  v_ordinals bigint[];
  v_ordinal  bigint;
  v_keyed    boolean;
  v_job      new_job;
  v_message  text;
  v_hint     text;
begin
  if coalesce(jsonb_typeof(p_jobs) <> 'array', true) then
    perform refuse('jobs is not a JSON array', 'Pass an array of objects.');
  end if;
  perform check_count('the number of jobs', jsonb_array_length(p_jobs), 10000);
  if jsonb_typeof(p_shared) <> 'object' then
    perform refuse('shared is not a JSON object', 'Pass an object, or null.');
  end if;

  begin
    v_shared := jsonb_populate_record(null::new_job, p_shared);
    select array_agg(distinct c.ordinal order by c.ordinal) filter (where c.ordinal is not null),
           bool_or(k.keyed)
      into v_ordinals, v_keyed
      from (select min(n.ordinality) as first,
                   min(n.ordinality) filter (
                     where not json_fits(n.payload, 1048576)
                        or not json_fits(n.meta, 16384)
                        or octet_length(n.dedup_key) not between 1 and 8192) as odd,
                   count(n.dedup_key) > 0 as keyed
              from jsonb_populate_recordset(v_shared, p_jobs) with ordinality as n
             group by n.queue, n.kind, n.priority, n.run_at, n.delay, n.max_attempts, n.timeout,
                      n.retry_base, n.retry_cap) as k,
           unnest(array[k.first, k.odd]) as c(ordinal);
  exception when data_exception then
    get stacked diagnostics v_message = message_text;
    perform refuse(format('jobs: %s', v_message),
                   'Times are ISO 8601 text, durations interval text such as 90 seconds.');
  end;

  begin
    foreach v_ordinal in array v_ordinals loop
      v_job := jsonb_populate_record(v_shared, p_jobs -> (v_ordinal - 1)::integer);
      perform check_new_job(v_job.queue, v_job.kind, v_job.payload, coalesce(v_job.priority, 5),
                            v_job.run_at, v_job.delay, coalesce(v_job.max_attempts, 5),
                            v_job.dedup_key, v_job.timeout, v_job.retry_base, v_job.retry_cap,
                            v_job.meta);
    end loop;
  exception when invalid_parameter_value then
    get stacked diagnostics v_message = message_text, v_hint = pg_exception_hint;
    perform refuse(format('jobs[%s]: %s', v_ordinal - 1, v_message), v_hint);
  end;
  return v_keyed;
end;
$$;
