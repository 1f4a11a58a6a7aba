-- channel() -> text
--
-- The NOTIFY channel of this install. Payloads: `q<queue_key>` a queue has work, `q*` any queue
-- may, `c<job_id>` the cancellation of a running job was accepted, `d<job_id>` a job has ended.
-- Never anything a user wrote.
create or replace function channel()
  returns text
  language sql
  stable
  security definer
  set search_path from current
as $$
  select 'tenure_' || 'job'::regclass::oid;
$$;
