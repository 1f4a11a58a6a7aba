-- failed_jobs: jobs that ended failed, for a person to look at; retry(job_id) queues one again.
create view failed_jobs as
select h.id as job_id, h.queue, h.kind, h.attempt, h.max_attempts, h.created_at, h.finished_at,
       h.last_error, h.payload
  from job_history as h
 where h.status = 'failed';
