-- queue_key(queue) -> integer
--
-- The number that stands for a queue in advisory locks and in notifications (`q<key>`). Two
-- queues may share one; that costs a needless wake-up and nothing else.
create or replace function queue_key(
  p_queue text
)
  returns integer
  language sql
  stable
  security invoker
as $$
  -- 0 is the key of all queues at once.
  select coalesce(nullif(pg_catalog.hashtext(p_queue), 0), 1);
$$;
