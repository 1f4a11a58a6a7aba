-- lapsed_jobs: running jobs whose lease is past and about which no sweep has decided yet.
create view lapsed_jobs as
select j.id as job_id, j.queue, j.kind, j.worker_id, j.token, j.attempt, j.max_attempts,
       j.claimed_at, j.lease_expires_at, j.cancel_requested, j.sealed_at, j.buffered
  from job as j
 where j.status = 'running'
   and j.lease_expires_at <= clock();
