-- grant_role(role, what) -> void
--
-- Opens tenure to a database role. what is one of
--
--   produce  enqueue, look at the cancellation of a job and wait for its result
--   work     everything a worker calls
--   operate  cancel, retry, pause, resume and upkeep
--   observe  read the views
--
-- No role ever needs a right on a table or a sequence.
--
-- Closed to everybody but the owner of the schema, and not to be granted.
--
-- Raises: 22023 for another word; 42704 for an unknown role, and for public, which is none.
create or replace function grant_role(
  p_role name,
  p_what text
)
  returns void
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
declare
  c_produce constant text[] := array[
    'enqueue', 'enqueue_many', 'wake', 'try_wake', 'cancel_requested', 'results', 'channel',
    'wait_begin', 'sleep_settled', 'sleep_end', 'schema_version'];
  c_work    constant text[] := array[
    'next_eligible_job_id', 'claim_job', 'claim', 'renew', 'cancel_requested', 'lapsed',
    'reclaim', 'update_owned', 'complete', 'fail', 'release', 'acknowledge_cancel', 'seal',
    'settle', 'guard', 'held', 'sweep', 'worker_seen', 'maintain', 'wake', 'channel',
    'queue_key', 'poll_floor', 'sleep_begin', 'sleep_settled', 'sleep_end', 'next_due',
    'results', 'schema_version'];
  c_operate constant text[] := array[
    'cancel', 'retry', 'pause', 'resume', 'sweep', 'lapsed', 'maintain', 'cancel_requested',
    'schema_version'];
  c_observe constant text[] := array['schema_version', 'clock'];
  v_names   text[] := case p_what
                        when 'produce' then c_produce
                        when 'work' then c_work
                        when 'operate' then c_operate
                        when 'observe' then c_observe
                      end;
  v_schema  name := current_schema();
  v_object  text;
begin
  if v_names is null then
    perform refuse(format('%s is nothing to grant', coalesce(quote_literal(p_what), 'null')),
                   'Use produce, work, operate or observe.');
  end if;
  if not exists (select from pg_roles as r where r.rolname = p_role) then
    raise exception using
      errcode = 'undefined_object',
      message = format('role %s does not exist', coalesce(quote_ident(p_role), 'null')),
      hint    = 'Create it first. There is no way to grant tenure to everybody.';
  end if;

  execute format('grant usage on schema %I to %I', v_schema, p_role);
  for v_object in
    select p.oid::regprocedure::text
      from pg_proc as p
     where p.pronamespace = quote_ident(v_schema)::regnamespace
       and p.proname = any (v_names)
  loop
    execute format('grant execute on function %s to %I', v_object, p_role);
  end loop;

  if p_what = 'observe' then
    for v_object in
      select c.oid::regclass::text
        from pg_class as c
       where c.relnamespace = quote_ident(v_schema)::regnamespace
         and c.relkind = 'v'
    loop
      execute format('grant select on %s to %I', v_object, p_role);
    end loop;
  end if;
end;
$$;
