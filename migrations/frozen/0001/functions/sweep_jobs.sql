-- sweep_jobs(worker_id, job_id, limit) -> setof swept (internal)
--
-- Decides about lapsed leases, of one job or of all (job_id null): the one statement behind
-- sweep. The write that decides carries the new token, so a late owner is refused from then on;
-- the attempt row is keyed by the lapsed one.
--
-- Locks: the rows, FOR UPDATE skip locked, in claim order.
create or replace function sweep_jobs(
  p_worker_id text,
  p_job_id    bigint,
  p_limit     integer
)
  returns setof swept
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
  v_now   timestamptz := due_clock();
  v_swept swept[];
  v_queue text;
begin
  with lapsed as materialized (
    select j.id, j.token, j.token_limit, j.worker_id, j.claimed_at, j.attempt, j.max_attempts,
           j.retry_base, j.retry_cap, j.cancel_requested, j.sealed_at is not null as sealed,
           j.buffered,
           coalesce(j.lease_expires_at
                      >= date_trunc('milliseconds', j.claimed_at + j.timeout), false) as timed_out
      from job as j
     where j.status = 'running'
       and j.lease_expires_at <= v_now
       and (p_job_id is null or j.id = p_job_id)
     order by j.claimed_at, j.id
     limit p_limit
       for update skip locked
  ),
  decided as materialized (
    select l.*,
           case
             when l.sealed then 'completed'
             when l.cancel_requested then 'cancelled'
             when l.buffered and l.token < l.token_limit then 'queued'
             when l.buffered or l.attempt >= l.max_attempts then 'failed'
             else 'queued'
           end::job_status as status,
           case
             when l.sealed then 'healed'
             when l.cancel_requested then 'cancelled'
             when l.timed_out and not l.buffered then 'timed out'
             else 'lost'
           end as outcome,
           case when l.timed_out then 'timed out' else 'lease lapsed' end as reason
      from lapsed as l
  ),
  ended as (
    delete from job as j
     using decided as d
     where j.id = d.id
       and d.status in ('completed', 'failed', 'cancelled')
    returning j.id, j.token + 1, j.token_limit, j.created_at, j.claimed_at, j.attempt,
              j.max_attempts, d.status, j.priority, j.retry_base, j.retry_cap, j.timeout,
              j.queue, j.kind, p_worker_id, j.dedup_key, j.payload, j.meta, j.progress,
              j.result,
              case
                when d.status <> 'failed' then j.last_error
                when d.buffered then format('given back %s times', d.token)
                else d.reason || ' on the last attempt'
              end
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
           token = j.token + 1,
           worker_id = null,
           claimed_at = null,
           lease_expires_at = null,
           buffered = false,
           reclaimed = false,
           solo = j.solo or d.buffered,
           attempt = d.attempt - d.buffered::integer,
           next_attempt_at = v_now + case when d.buffered then '0'
                                          else backoff(d.retry_base, d.retry_cap, d.attempt)
                                     end,
           last_error = case when d.buffered then j.last_error else d.reason end
      from decided as d
     where j.id = d.id
       and d.status = 'queued'
    returning j.id, j.next_attempt_at
  ),
  noted as (
    insert into attempt
           (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome)
    select d.id, d.token, d.claimed_at, v_now, d.attempt, d.worker_id, 'sweep', d.outcome
      from decided as d
  )
  select coalesce(array_agg(row(d.id, d.token, d.outcome, d.status, q.next_attempt_at)::swept
                            order by d.claimed_at, d.id), '{}')
    into v_swept
    from decided as d
    left join queued as q on q.id = d.id;

  perform notify_waiters(array(select s.job_id from unnest(v_swept) as s
                                where s.status in ('completed', 'failed', 'cancelled')));
  perform trim_attempts(s.job_id) from unnest(v_swept) as s where s.token > 20;
  for v_queue in
    select distinct j.queue
      from unnest(v_swept) as s
      join job as j on j.id = s.job_id
     where s.next_attempt_at < v_now + poll_floor()
  loop
    perform notify_sleepers(v_queue);
  end loop;

  return query select s.* from unnest(v_swept) as s;
end;
$$;
