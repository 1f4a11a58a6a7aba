-- settle(worker_id, job_ids, tokens, verbs, results, errors, delays, started)
--   -> setof job_verdict
--
-- Ends 1 to 1,000 leases of one worker in one round trip, each by its own verb: complete, fail,
-- release or acknowledge_cancel, with the meaning and the verdicts of those functions. One stale
-- job changes nothing for the others. The arrays are parallel:
--
--   results   for complete
--   errors    for fail: {"error_type", "message", "traceback", "retryable", "cancel"}
--   delays    for fail, null is backoff; for release, null is at once
--   started   for release: false gives the attempt back; null counts as true
--
-- The last four may be null altogether.
--
-- Locks:   the rows, skip locked, in id order. It never waits: a row that somebody holds is
--          answered deferred, to be tried again while the lease is renewed.
-- Returns: one row per lease, in no order.
-- Raises:  22023 for a bad argument (the same job twice among them), TN006 outside READ
--          COMMITTED.
create or replace function settle(
  p_worker_id text,
  p_job_ids   bigint[],
  p_tokens    bigint[],
  p_verbs     text[],
  p_results   jsonb[] default null,
  p_errors    jsonb[] default null,
  p_delays    interval[] default null,
  p_started   boolean[] default null
)
  returns setof job_verdict
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
begin
  perform check_isolation('settle');
  perform check_leases(p_job_ids, p_tokens);
  perform check_outcomes(p_worker_id, p_job_ids, p_verbs, p_results, p_errors, p_delays, p_started);

  return query
  select s.*
    from settle_jobs(p_worker_id, p_job_ids, p_tokens, p_verbs, p_results, p_errors, p_delays,
                     array(select coalesce(s, true)
                             from unnest(p_job_ids, p_started) as a(job_id, s))) as s;
end;
$$;
