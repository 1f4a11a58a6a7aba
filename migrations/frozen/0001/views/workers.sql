-- workers: who reported within the last day, and how many leases each has.
create view workers as
select w.worker_id, w.queues, w.info, w.first_seen_at, w.last_seen_at,
       (select count(*) from job as j
         where j.status = 'running' and j.worker_id = w.worker_id) as running
  from worker as w;
