-- attempts: how each lease ended that did not complete its job, the last 20 of each.
create view attempts as
select a.job_id, a.token, a.attempt, a.worker_id, a.verb, a.outcome, a.started_at, a.ended_at,
       a.error_type, a.message, a.traceback
  from attempt as a;
