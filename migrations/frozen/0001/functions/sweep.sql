-- sweep(worker_id, limit) -> setof swept
--
-- Decides about up to limit (1 to 10,000) lapsed leases, oldest claim first. First match:
--
--   sealed            completed with the sealed result, without running again (healed)
--   cancel requested  cancelled
--   buffered          queued now, attempt refunded, solo: it may not have started
--   attempts spent    failed
--   else              queued after backoff
--
-- A job that reached its timeout is one such lapse, recorded as timed out. Each decision mints a
-- token, so the late owner is refused. One row that cannot be decided never fails the rest.
--
-- Any worker may sweep, several at once; call it every 10 s or so, at most a twentieth of the
-- time. About once a minute one of them also looks for jobs behind their lane's floor.
--
-- Locks:   the rows, skip locked; it never waits.
-- Returns: what became of each lapsed lease: its token, the outcome (healed, cancelled, lost,
--          timed out), the job's status, and when it is due again if it was queued.
-- Raises:  22023 for a bad argument, TN006 outside READ COMMITTED.
create or replace function sweep(
  p_worker_id text,
  p_limit     integer default 100
)
  returns setof swept
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
declare
  v_swept swept[] := '{}';
  v_one   swept[];
  v_error text;
  v_id    bigint;
begin
  perform check_isolation('sweep');
  perform check_name('worker_id', p_worker_id, 256);
  perform check_count('limit', p_limit, 10000);

  begin
    v_swept := array(select s from sweep_jobs(p_worker_id, null, p_limit) as s);
  exception when others then
    for v_id in select l.job_id from lapsed(10000) as l loop
      exit when cardinality(v_swept) >= p_limit;
      begin
        v_one := array(select s from sweep_jobs(p_worker_id, v_id, 1) as s);
        v_swept := v_swept || v_one;
      exception when others then
        get stacked diagnostics v_error = message_text;
        raise warning 'sweep: job % stays as it is: %', v_id, v_error;
      end;
    end loop;
  end;

  perform seek_stragglers();
  return query select s.* from unnest(v_swept) as s;
end;
$$;
