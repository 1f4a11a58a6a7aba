-- backoff(base, cap, attempt) -> interval (internal)
--
-- How long a job waits after its attempt-th attempt: base doubled each time up to cap, times a
-- random factor from 0.75 to 1, so that jobs that failed together do not return together. Null
-- stands for a base of 5 seconds and a cap of one hour.
create or replace function backoff(
  p_base    interval,
  p_cap     interval,
  p_attempt integer
)
  returns interval
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
declare
  -- In seconds: an interval would overflow.
  v_base double precision := extract(epoch from coalesce(p_base, interval '5 seconds'));
  v_cap  double precision := extract(epoch from coalesce(p_cap, interval '1 hour'));
begin
  return make_interval(
    secs => least(v_cap, v_base * power(2, least(p_attempt - 1, 30))) * (0.75 + 0.25 * random()));
end;
$$;
