-- check_new_job(queue, kind, payload, priority, run_at, delay, max_attempts, dedup_key, timeout,
--               retry_base, retry_cap, meta) -> void (internal)
--
-- Raises: 22023 when an argument of enqueue can never be right.
create or replace function check_new_job(
  p_queue        text,
  p_kind         text,
  p_payload      jsonb,
  p_priority     integer,
  p_run_at       timestamptz,
  p_delay        interval,
  p_max_attempts integer,
  p_dedup_key    text,
  p_timeout      interval,
  p_retry_base   interval,
  p_retry_cap    interval,
  p_meta         jsonb
)
  returns void
  language plpgsql
  volatile
  security invoker
as $$
begin
  -- What most jobs are like, seen at one look.
  if octet_length(p_queue) between 1 and 128
     and octet_length(p_kind) between 1 and 128
     and p_queue || p_kind !~ '[^!-~]'
     and coalesce(json_fits(p_payload, 1048576), true)
     and p_priority between 0 and 9
     and p_max_attempts between 1 and 1000
     and coalesce(octet_length(p_dedup_key) between 1 and 8192, true)
     and num_nulls(p_run_at, p_delay, p_timeout, p_retry_base, p_retry_cap, p_meta) = 6 then
    return;
  end if;

  perform check_name('queue', p_queue, 128);
  perform check_name('kind', p_kind, 128);
  perform check_json('payload', p_payload, 1048576);
  perform check_json('meta', p_meta, 16384);
  perform check_count('max_attempts', p_max_attempts, 1000);
  if coalesce(p_priority not between 0 and 9, true) then
    perform refuse(format('priority is %s', coalesce(p_priority::text, 'null')),
                   'Use a number from 0, which is first, to 9.');
  end if;
  if p_run_at is not null and p_delay is not null then
    perform refuse('run_at and delay are both given', 'Pass one of them.');
  end if;
  if p_run_at > clock() + interval '3653 days' then
    perform refuse('run_at is more than ten years ahead', 'Use a time within ten years.');
  end if;
  if p_delay is not null then
    perform check_span('delay', p_delay, '0', '3653 days');
  end if;
  if p_timeout is not null then
    perform check_span('timeout', p_timeout, '100 milliseconds', '3653 days');
  end if;
  if p_retry_base is not null then
    perform check_span('retry_base', p_retry_base, '0', '3653 days');
  end if;
  if p_retry_cap is not null then
    perform check_span('retry_cap', p_retry_cap, '0', '3653 days');
  end if;
  if octet_length(p_dedup_key) not between 1 and 8192 then
    perform refuse(format('dedup_key is %s bytes long', octet_length(p_dedup_key)),
                   'Use 1 to 8192 bytes.');
  end if;
end;
$$;
