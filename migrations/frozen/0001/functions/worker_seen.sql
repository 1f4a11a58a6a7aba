-- worker_seen(worker_id, queues, info) -> void
--
-- Notes that a worker lives and lists its queues, for people to look at; the contract never
-- reads it. Call it at the start and about once a minute.
--
-- Locks:  the worker's row; the rows of queues are made when missing.
-- Raises: 22023 for a bad argument.
create or replace function worker_seen(
  p_worker_id text,
  p_queues    text[],
  p_info      jsonb default null
)
  returns void
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
declare
  v_now timestamptz := clock();
begin
  perform check_name('worker_id', p_worker_id, 256);
  perform check_queues(p_queues);
  perform check_json('info', p_info, 16384);

  insert into worker as w (worker_id, queues, info, first_seen_at, last_seen_at)
  values (p_worker_id, p_queues, p_info, v_now, v_now)
      on conflict (worker_id) do update
     set queues = excluded.queues,
         info = excluded.info,
         last_seen_at = excluded.last_seen_at;

  insert into queue (queue)
  select distinct a.queue
    from unnest(p_queues) as a(queue)
   where not exists (select from queue as q where q.queue = a.queue)
   order by a.queue
      on conflict do nothing;
end;
$$;
