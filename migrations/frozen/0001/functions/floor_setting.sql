-- floor_setting(queue) -> text (internal)
--
-- The name of the session setting that keeps a queue's lane floors. The queue is written out in
-- hex, never hashed: two queues that shared floors would lose jobs.
create or replace function floor_setting(
  p_queue text
)
  returns text
  language plpgsql
  stable
  security definer
  set search_path from current
as $$
begin
  return 'tenure.floor_' || 'job'::regclass::oid || '_'
         || encode(convert_to(p_queue, 'UTF8'), 'hex');
end;
$$;
