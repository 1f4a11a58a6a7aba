-- settle_jobs(worker_id, job_ids, tokens, verbs, results, errors, delays, started)
--   -> setof job_verdict (internal)
--
-- Ends leases: the one statement behind complete, fail, release, acknowledge_cancel and settle.
-- A row that the caller does not own, or that somebody else holds just now, is not locked and
-- so not changed; what became of it is read afterwards (stale_verdict).
--
--   mine      the rows whose token and worker_id are the ones shown, locked
--   judged    what stands in the way
--   decided   where each job goes: no row goes to two places, for a row that is updated and
--             deleted in one statement is silently not deleted
--
-- Locks: the rows, FOR UPDATE skip locked, in id order.
create or replace function settle_jobs(
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
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
  set jit = off
as $$
declare
  v_now     timestamptz := due_clock();
  v_settled job_verdict[];
  v_queue   text;
begin
  with asked as (
    select a.*
      from unnest(p_job_ids, p_tokens, p_verbs, p_results, p_errors, p_delays, p_started)
           as a(job_id, token, verb, result, error, delay, started)
  ),
  mine as materialized (
    select j.id, j.token, j.token_limit, j.attempt, j.max_attempts, j.retry_base, j.retry_cap,
           j.cancel_requested, j.sealed_at is not null as sealed, j.buffered, j.reclaimed, j.solo,
           j.claimed_at, a.verb, a.delay,
           case when a.verb = 'complete' then a.result end as result,
           case when a.verb = 'fail' then a.error end as error,
           a.verb <> 'release' or a.started as reported,
           a.verb = 'release' and not a.started and (j.buffered or not j.reclaimed) as refund
      from asked as a
      join job as j on j.id = a.job_id
     where j.token = a.token
       and j.worker_id = p_worker_id
     order by j.id
       for update of j skip locked
  ),
  judged as (
    select m.*,
           case
             when m.verb = 'complete' then
               case when m.cancel_requested then 'cancel_requested' else 'ok' end
             when m.sealed then 'sealed'
             when m.verb = 'acknowledge_cancel' and not m.cancel_requested then 'not_requested'
             else 'ok'
           end as verdict
      from mine as m
  ),
  decided as materialized (
    select g.*,
           case
             when g.verdict <> 'ok' then 'running'
             when g.verb = 'complete' then 'completed'
             when g.cancel_requested then 'cancelled'
             when (g.error ->> 'cancel')::boolean then 'cancelled'
             when not (g.error ->> 'retryable')::boolean then 'failed'
             when g.verb = 'release' and g.token >= g.token_limit then 'failed'
             when g.refund or g.attempt < g.max_attempts then 'queued'
             else 'failed'
           end::job_status as status
      from judged as g
  ),
  ended as (
    delete from job as j
     using decided as d
     where j.id = d.id
       and d.status in ('completed', 'failed', 'cancelled')
    returning j.id, j.token, j.token_limit, j.created_at, j.claimed_at, j.attempt,
              j.max_attempts, d.status, j.priority, j.retry_base, j.retry_cap, j.timeout,
              j.queue, j.kind, j.worker_id, j.dedup_key, j.payload, j.meta, j.progress,
              case when d.sealed then j.result else d.result end as result,
              case
                when d.verb = 'fail' then error_line(d.error)
                when d.status = 'failed' and d.token >= d.token_limit
                  then format('given back %s times', d.token)
                when d.status = 'failed' then 'given back on the last attempt'
                else j.last_error
              end as last_error
  ),
  kept as (
    insert into job_history
           (id, token, token_limit, created_at, claimed_at, attempt, max_attempts, status,
            priority, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload,
            meta, progress, result, last_error, finished_at)
    select e.*, v_now
      from ended as e
  ),
  queued as (
    update job as j
       set status = 'queued',
           worker_id = null,
           claimed_at = null,
           lease_expires_at = null,
           buffered = false,
           reclaimed = false,
           -- A job whose handler reported did not kill its worker. One that was taken over from
           -- a batch may have.
           solo = not d.reported and (d.solo or (d.reclaimed and d.buffered)),
           attempt = d.attempt - d.refund::integer,
           next_attempt_at = v_now + coalesce(
             d.delay,
             case when d.verb = 'fail' then backoff(d.retry_base, d.retry_cap, d.attempt) end,
             '0'),
           last_error = case when d.verb = 'fail' then error_line(d.error) else j.last_error end
      from decided as d
     where j.id = d.id
       and d.status = 'queued'
    returning j.id, j.next_attempt_at
  ),
  noted as (
    insert into attempt
           (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome, error_type,
            message, traceback)
    select d.id, d.token, d.claimed_at, v_now, d.attempt, p_worker_id, d.verb,
           case when d.status = 'cancelled' then 'cancelled'
                when d.verb = 'fail' then 'failed'
                else 'released'
           end,
           cut_text(d.error ->> 'error_type', 256), cut_text(d.error ->> 'message', 8192),
           cut_text(d.error ->> 'traceback', 32768)
      from decided as d
     where d.verdict = 'ok'
       and d.verb <> 'complete'
  )
  select coalesce(array_agg(row(d.id, d.token, d.verdict, d.status,
                                q.next_attempt_at)::job_verdict), '{}')
    into v_settled
    from decided as d
    left join queued as q on q.id = d.id;

  perform notify_waiters(array(select s.job_id from unnest(v_settled) as s
                                where s.status in ('completed', 'failed', 'cancelled')));
  return query select s.* from unnest(v_settled) as s;

  if cardinality(v_settled) < cardinality(p_job_ids) then
    return query
    select s.*
      from unnest(p_job_ids, p_tokens, p_verbs) as a(job_id, token, verb),
           stale_verdict(a.job_id, p_worker_id, a.token, a.verb) as s
     where a.job_id <> all (array(select s.job_id from unnest(v_settled) as s));
  end if;

  if p_verbs && array['fail', 'release', 'acknowledge_cancel'] then
    perform trim_attempts(s.job_id) from unnest(v_settled) as s
      where s.token > 20 and s.verdict = 'ok' and s.status <> 'completed';
    for v_queue in
      select distinct j.queue
        from unnest(v_settled) as s
        join job as j on j.id = s.job_id
       where s.next_attempt_at < v_now + poll_floor()
    loop
      perform notify_sleepers(v_queue);
    end loop;
  end if;
end;
$$;
