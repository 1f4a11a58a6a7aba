-- check_queues(queues) -> void (internal)
--
-- Raises: 22023 unless there are 1 to 1,000 queues and each is a name.
create or replace function check_queues(
  p_queues text[]
)
  returns void
  language plpgsql
  volatile
  security invoker
as $$
declare
  v_queue text;
begin
  perform check_count('the number of queues', cardinality(p_queues), 1000);
  foreach v_queue in array p_queues loop
    perform check_name('queue', v_queue, 128);
  end loop;
end;
$$;
