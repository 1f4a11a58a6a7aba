-- The tables of tenure, the types of its answers, and what may be true of a row.
--
-- Everything is created in the first schema of the search_path; no file here names one. Times
-- are timestamptz by clock(), leases whole milliseconds, so that any language can hand an
-- instant back exactly. Columns stand in order of alignment, widest first.

create type job_status as enum (
  'queued',     -- waits for a worker, from next_attempt_at on
  'running',    -- lent to one worker until its lease lapses and somebody decides about it
  'completed',  -- its work was reported complete; never claimed again
  'failed',     -- out of attempts, or failed for good; retry queues it again
  'cancelled'   -- cancelled before or while it ran; retry queues it again
);

-- Live jobs only: what is queued or running. A job that ends moves to job_history, so this
-- table stays as small as the backlog. Rows move: let no foreign key point here.
create table job (
  id               bigint generated always as identity,
  next_attempt_at  timestamptz not null,
  -- The fencing token. It outlives every lease and only grows, so that a late call from a
  -- former owner can be told from the present one. Never fence on attempt: it is refunded.
  token            bigint not null default 0,
  token_limit      bigint not null,
  created_at       timestamptz not null,
  claimed_at       timestamptz,
  lease_expires_at timestamptz,
  sealed_at        timestamptz,
  attempt          integer not null default 0,
  max_attempts     integer not null,
  status           job_status not null default 'queued',
  priority         smallint not null,
  solo             boolean not null default false,
  buffered         boolean not null default false,
  reclaimed        boolean not null default false,
  cancel_requested boolean not null default false,
  -- Null stands for the default of backoff(), and for no timeout.
  retry_base       interval,
  retry_cap        interval,
  timeout          interval,
  queue            text not null,
  kind             text not null,
  worker_id        text,
  dedup_key        text,
  payload          jsonb,
  meta             jsonb,
  progress         jsonb,
  result           jsonb,
  last_error       text,

  constraint job_pkey primary key (id),
  constraint job_is_live
    check (status in ('queued', 'running')),
  constraint job_runs_exactly_while_a_worker_has_a_whole_lease
    check ((status = 'running') = (worker_id is not null)
       and (worker_id is null) = (claimed_at is null)
       and (worker_id is null) = (lease_expires_at is null)),
  constraint job_queued_has_attempts_left_and_no_cancel_pending
    check (status <> 'queued' or (attempt < max_attempts and not cancel_requested)),
  constraint job_flags_of_a_lease_end_with_it
    check (status = 'running' or not (buffered or reclaimed)),
  constraint job_sealed_only_while_running
    check (sealed_at is null or (status = 'running' and not cancel_requested)),
  constraint job_counts_are_in_range
    check (attempt between 0 and max_attempts and token >= 0 and priority between 0 and 9)
)
-- Room on each page for what its jobs become while they run: a claim that need not look for
-- another page writes less, and renewals, which change no indexed column, stay there (HOT).
with (
  fillfactor = 45,
  autovacuum_vacuum_scale_factor = 0.0,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_insert_scale_factor = 0.0,
  autovacuum_vacuum_insert_threshold = 50000,
  autovacuum_vacuum_cost_delay = 0,
  vacuum_truncate = off
);

comment on table job is
  'Live jobs. A row moves to job_history when its job ends: let no foreign key point here.';
comment on column job.token is
  'Fencing token: minted by each claim, reclaim and sweep; only the latest may write.';
comment on column job.token_limit is
  'Ends a claim-and-give-back loop: at this token a release or a refund fails the job.';
comment on column job.buffered is
  'Claimed in a batch, so it may not have started: a lapse is refunded and makes it solo.';
comment on column job.solo is
  'Suspected of killing its worker: handed out at most one per claim, never buffered.';
comment on column job.reclaimed is
  'The lease was taken over from a worker that may have started the job.';

-- A claim reads one lane, which is one (queue, priority, solo), by due time.
create index job_lane on job (queue, priority, solo, next_attempt_at, id)
  where status = 'queued';

create index job_running on job (claimed_at, id)
  where status = 'running';

create unique index job_dedup on job (queue, dedup_key)
  where dedup_key is not null;

-- Finished jobs, a partition a day. No completion can fail for want of a partition: the
-- default one takes what no other does.
create table job_history (
  id               bigint not null,
  finished_at      timestamptz not null,
  token            bigint not null,
  token_limit      bigint not null,
  created_at       timestamptz not null,
  claimed_at       timestamptz,
  attempt          integer not null,
  max_attempts     integer not null,
  status           job_status not null,
  priority         smallint not null,
  retry_base       interval,
  retry_cap        interval,
  timeout          interval,
  queue            text not null,
  kind             text not null,
  worker_id        text,
  dedup_key        text,
  payload          jsonb,
  meta             jsonb,
  progress         jsonb,
  result           jsonb,
  last_error       text,

  constraint job_history_has_ended
    check (status in ('completed', 'failed', 'cancelled'))
) partition by range (finished_at);

create index job_history_id on job_history (id);

create table job_history_default partition of job_history default;

comment on table job_history is
  'Finished jobs by day of finished_at; maintain() makes partitions ahead and drops old ones.';

-- One row per lease that ended without completing its job, the last 20 of each job.
create table attempt (
  job_id      bigint not null,
  token       bigint not null,
  started_at  timestamptz not null,
  ended_at    timestamptz not null,
  attempt     integer not null,
  worker_id   text not null,
  verb        text not null,
  outcome     text not null,
  error_type  text,
  message     text,
  traceback   text,

  constraint attempt_pkey primary key (job_id, token),
  constraint attempt_verb_is_known
    check (verb in ('fail', 'release', 'acknowledge_cancel', 'sweep', 'reclaim')),
  constraint attempt_outcome_is_known
    check (outcome in ('failed', 'released', 'cancelled', 'lost', 'healed', 'timed out'))
);

comment on table attempt is
  'How each lease ended that did not complete its job; token is that of the lease that ended.';
comment on column attempt.started_at is
  'When the lease was granted; a buffered one may never have started.';

-- A row exists only where somebody set something or a worker listed the queue; enqueue never
-- makes one, so a first enqueue touches no shared row.
create table queue (
  queue               text not null,
  paused_at           timestamptz,
  -- Lane floors for new sessions: pairs of lane number and microseconds since 1970. A copy of
  -- what some session proved, refreshed at most every 30 s.
  floors              bigint[] not null default '{}',
  floors_published_at timestamptz not null default '-infinity',
  -- Moves when a job was found behind a floor; sessions forget their floors when it does.
  floor_generation    integer not null default 0,

  constraint queue_pkey primary key (queue)
) with (fillfactor = 50);

-- For people to look at; the contract never reads it.
create table worker (
  worker_id     text not null,
  queues        text[] not null,
  info          jsonb,
  first_seen_at timestamptz not null,
  last_seen_at  timestamptz not null,

  constraint worker_pkey primary key (worker_id)
);

create table install (
  only_row             boolean not null default true,
  notify               boolean not null default true,
  stragglers_sought_at timestamptz not null default '-infinity',
  stragglers_cost      interval not null default '0',

  constraint install_pkey primary key (only_row),
  constraint install_is_one_row check (only_row)
);

comment on column install.notify is
  'False: nothing here sends NOTIFY, and workers poll. For two-phase commit, or a full queue.';

insert into install default values;

-- The answers of the functions, one type per shape. Callers in any language read them by name.
create type lease as (
  job_id           bigint,
  token            bigint,
  worker_id        text,
  lease_expires_at timestamptz,
  queue            text,
  kind             text,
  payload          jsonb,
  priority         smallint,
  attempt          integer,
  max_attempts     integer,
  timeout          interval,
  buffered         boolean,
  solo             boolean,
  progress         jsonb,
  meta             jsonb,
  created_at       timestamptz,
  last_error       text
);

create type lapsed_lease as (
  job_id           bigint,
  worker_id        text,
  token            bigint,
  lease_expires_at timestamptz
);

create type held_lease as (
  job_id           bigint,
  token            bigint,
  lease_expires_at timestamptz
);

create type renewal as (
  job_id           bigint,
  token            bigint,
  outcome          text,
  lease_expires_at timestamptz,
  cancel_requested boolean
);

create type job_verdict as (
  job_id          bigint,
  token           bigint,
  verdict         text,
  status          job_status,
  next_attempt_at timestamptz
);

create type swept as (
  job_id          bigint,
  token           bigint,
  outcome         text,
  status          job_status,
  next_attempt_at timestamptz
);

create type enqueued as (
  job_id  bigint,
  created boolean
);

-- An element of enqueue_many's array.
create type new_job as (
  queue        text,
  kind         text,
  payload      jsonb,
  priority     integer,
  run_at       timestamptz,
  delay        interval,
  max_attempts integer,
  dedup_key    text,
  timeout      interval,
  retry_base   interval,
  retry_cap    interval,
  meta         jsonb
);

create type enqueued_many as (
  ordinal integer,
  job_id  bigint,
  created boolean
);

create type job_answer as (
  job_id     bigint,
  verdict    text,
  status     job_status,
  holder_pid integer
);

create type queue_answer as (
  queue      text,
  verdict    text,
  paused_at  timestamptz,
  holder_pid integer
);

create type due as (
  due_at timestamptz,
  due_in interval
);

create type job_result as (
  job_id     bigint,
  token      bigint,
  status     job_status,
  result     jsonb,
  error_type text,
  message    text
);
