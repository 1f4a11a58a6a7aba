-- jobs: every job, live and finished, one column list.
--
-- shade tells apart what status does not: scheduled is queued and not yet due, retrying is queued
-- again after an attempt. Select by job_id and both tables are read in one statement, so a job
-- that is just moving is never missed.
create view jobs as
select j.id as job_id, j.queue, j.kind, j.status,
       case
         when j.status <> 'queued' then j.status::text
         when j.attempt > 0 then 'retrying'
         when j.next_attempt_at > clock() then 'scheduled'
         else 'queued'
       end as shade,
       j.priority, j.attempt, j.max_attempts, j.token, j.worker_id,
       case when j.status = 'queued' then j.next_attempt_at end as next_attempt_at,
       j.lease_expires_at, j.claimed_at, j.created_at, null::timestamptz as finished_at,
       j.cancel_requested, j.sealed_at, j.buffered, j.solo, j.dedup_key, j.timeout, j.payload,
       j.result, j.progress, j.meta, j.last_error
  from job as j
union all
select h.id, h.queue, h.kind, h.status, h.status::text, h.priority, h.attempt, h.max_attempts,
       h.token, h.worker_id, null, null, h.claimed_at, h.created_at, h.finished_at, false, null,
       false, false, h.dedup_key, h.timeout, h.payload, h.result, h.progress, h.meta,
       h.last_error
  from job_history as h;
