-- sleep_keys(queues) -> integer[] (internal)
--
-- The second halves of the advisory locks that a sleeper on these queues holds: one for each
-- queue, or the one of all queues for more than 32, since a lock each can exhaust the server's
-- lock table.
create or replace function sleep_keys(
  p_queues text[]
)
  returns integer[]
  language sql
  stable
  security definer
  set search_path from current
as $$
  select case
    when cardinality(p_queues) > 32 then array[0]
    else array(select distinct queue_key(a.queue) from unnest(p_queues) as a(queue))
  end;
$$;
