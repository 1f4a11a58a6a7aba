-- wake(queues) -> void
--
-- Wakes whoever sleeps on these queues. For producers that enqueue with notify => false and
-- call this after their commit: that transaction has nothing to flush, so it holds NOTIFY's
-- global lock for microseconds. One wake covers every job committed before it.
--
-- Raises: 22023 for a null array or a bad queue name.
create or replace function wake(
  p_queues text[]
)
  returns void
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
declare
  v_queue text;
begin
  perform check_queues(p_queues);
  foreach v_queue in array p_queues loop
    perform notify_sleepers(v_queue);
  end loop;
end;
$$;
