-- A copy of every version of every job's row, written by triggers in the transaction that wrote
-- the version; and the table that handlers write to inside job.transaction().
--
-- A job's versions are written under its row's lock, so seq is their order. Times are
-- microseconds since 1970.

create schema audit;

create table audit.version (
  seq              bigint generated always as identity primary key,
  xid              bigint not null default pg_current_xact_id()::text::bigint,
  at               bigint not null,
  op               text not null,
  place            text not null,
  job_id           bigint not null,
  status           text not null,
  token            bigint not null,
  worker_id        text,
  attempt          integer not null,
  max_attempts     integer not null,
  buffered         boolean not null default false,
  solo             boolean not null default false,
  cancel_requested boolean not null default false,
  sealed           boolean not null default false,
  claimed_at       bigint,
  lease_expires_at bigint,
  timeout          bigint,
  progress         bigint
);

create table audit.effect (
  job_id    bigint not null,
  token     bigint not null,
  worker_id text not null,
  child_id  bigint not null,
  xid       bigint not null default pg_current_xact_id()::text::bigint
);

create function audit.us(p_at timestamptz) returns bigint
  language sql immutable
  return (extract(epoch from p_at) * 1000000)::bigint;

create function audit.note_job() returns trigger
  language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_row tenure.job := case when tg_op = 'DELETE' then old else new end;
begin
  insert into audit.version
         (at, op, place, job_id, status, token, worker_id, attempt, max_attempts, buffered, solo,
          cancel_requested, sealed, claimed_at, lease_expires_at, timeout, progress)
  values (audit.us(clock_timestamp()), lower(tg_op), 'job', v_row.id, v_row.status::text,
          v_row.token, v_row.worker_id, v_row.attempt, v_row.max_attempts, v_row.buffered,
          v_row.solo, v_row.cancel_requested, v_row.sealed_at is not null,
          audit.us(v_row.claimed_at), audit.us(v_row.lease_expires_at),
          (extract(epoch from v_row.timeout) * 1000000)::bigint, (v_row.progress)::bigint);
  return null;
end;
$$;

create function audit.note_history() returns trigger
  language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_row tenure.job_history := case when tg_op = 'DELETE' then old else new end;
begin
  insert into audit.version
         (at, op, place, job_id, status, token, worker_id, attempt, max_attempts, claimed_at,
          timeout, progress)
  values (audit.us(clock_timestamp()), lower(tg_op), 'history', v_row.id, v_row.status::text,
          v_row.token, v_row.worker_id, v_row.attempt, v_row.max_attempts,
          audit.us(v_row.claimed_at), (extract(epoch from v_row.timeout) * 1000000)::bigint,
          (v_row.progress)::bigint);
  return null;
end;
$$;

create trigger audit after insert or update or delete on tenure.job
  for each row execute function audit.note_job();
create trigger audit after insert or update or delete on tenure.job_history
  for each row execute function audit.note_history();
