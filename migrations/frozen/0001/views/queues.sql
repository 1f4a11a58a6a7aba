-- queues: what waits and runs in each queue that has jobs or was listed by a worker, by the
-- shades of the view jobs.
create view queues as
select coalesce(q.queue, c.queue) as queue, q.paused_at,
       coalesce(c.queued, 0) as queued, coalesce(c.scheduled, 0) as scheduled,
       coalesce(c.retrying, 0) as retrying, coalesce(c.running, 0) as running, c.oldest_due_at
  from queue as q
  full join (
    select j.queue,
           count(*) filter (where j.status = 'queued' and j.attempt = 0
                              and j.next_attempt_at <= clock()) as queued,
           count(*) filter (where j.status = 'queued' and j.attempt = 0
                              and j.next_attempt_at > clock()) as scheduled,
           count(*) filter (where j.status = 'queued' and j.attempt > 0) as retrying,
           count(*) filter (where j.status = 'running') as running,
           min(j.next_attempt_at) filter (where j.status = 'queued'
                                            and j.next_attempt_at <= clock()) as oldest_due_at
      from job as j
     group by j.queue
  ) as c on c.queue = q.queue;
