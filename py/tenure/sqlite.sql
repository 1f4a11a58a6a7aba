-- The tables of tenure in a SQLite file, and what may be true of a row.
--
-- The names are prefixed because the file may be the application's own. Times are whole
-- microseconds since 1970 in UTC, durations whole microseconds, JSON is text, flags are 0 or 1.
-- The rules that move a row live in the Python modules beside this file.

-- Live jobs only: what is queued or running. A job that ends moves to tenure_history, so this
-- table stays as small as the backlog. Rows move: let no foreign key point here.
create table tenure_job (
  -- autoincrement: the id of a job that left must never be given to another.
  id               integer primary key autoincrement,
  queue            text not null,
  kind             text not null,
  priority         integer not null,
  status           text not null default 'queued',
  next_attempt_at  integer not null,
  attempt          integer not null default 0,
  max_attempts     integer not null,
  -- The fencing token. It outlives every lease and only grows, so that a late call from a
  -- former owner can be told from the present one. Never fence on attempt: it is refunded.
  token            integer not null default 0,
  -- Ends a claim-and-give-back loop: at this token a release or a refund fails the job.
  token_limit      integer not null,
  worker_id        text,
  lease_expires_at integer,
  claimed_at       integer,
  -- Claimed in a batch, so it may not have started: a lapse is refunded and makes it solo.
  buffered         integer not null default 0,
  -- Suspected of killing its worker: handed out at most one per claim, never buffered.
  solo             integer not null default 0,
  -- The lease was taken over from a worker that may have started the job.
  reclaimed        integer not null default 0,
  cancel_requested integer not null default 0,
  sealed_at        integer,
  -- Null stands for the default of backoff, and for no timeout.
  retry_base       integer,
  retry_cap        integer,
  timeout          integer,
  dedup_key        text,
  created_at       integer not null,
  -- What may be large stands last: SQLite reads a row from its start, page by page.
  last_error       text,
  meta             text,
  progress         text,
  result           text,
  payload          text,

  constraint job_is_live
    check (status in ('queued', 'running')),
  constraint job_runs_exactly_while_a_worker_has_a_whole_lease
    check ((status = 'running') = (worker_id is not null)
       and (worker_id is null) = (claimed_at is null)
       and (worker_id is null) = (lease_expires_at is null)),
  constraint job_lease_ends_on_a_whole_millisecond
    check (lease_expires_at % 1000 = 0),
  constraint job_queued_has_attempts_left_and_no_cancel_pending
    check (status <> 'queued' or (attempt < max_attempts and not cancel_requested)),
  constraint job_flags_of_a_lease_end_with_it
    check (status = 'running' or not (buffered or reclaimed)),
  constraint job_sealed_only_while_running
    check (sealed_at is null or (status = 'running' and not cancel_requested)),
  constraint job_flags_are_booleans
    check (buffered in (0, 1) and solo in (0, 1) and reclaimed in (0, 1)
       and cancel_requested in (0, 1)),
  constraint job_counts_are_in_range
    check (attempt between 0 and max_attempts and token >= 0 and priority between 0 and 9)
) strict;

-- A claim reads one lane, which is one (queue, priority, solo), by due time.
create index tenure_job_lane on tenure_job (queue, priority, solo, next_attempt_at, id)
  where status = 'queued';

create index tenure_job_running on tenure_job (claimed_at, id)
  where lease_expires_at is not null;

create unique index tenure_job_dedup on tenure_job (queue, dedup_key)
  where dedup_key is not null;

-- Finished jobs, until maintain() deletes them.
create table tenure_history (
  id           integer primary key,
  queue        text not null,
  kind         text not null,
  priority     integer not null,
  status       text not null,
  attempt      integer not null,
  max_attempts integer not null,
  token        integer not null,
  token_limit  integer not null,
  worker_id    text,
  claimed_at   integer,
  retry_base   integer,
  retry_cap    integer,
  timeout      integer,
  dedup_key    text,
  created_at   integer not null,
  finished_at  integer not null,
  last_error   text,
  meta         text,
  progress     text,
  result       text,
  payload      text,

  constraint history_has_ended
    check (status in ('completed', 'failed', 'cancelled'))
) strict;

create index tenure_history_age on tenure_history (status, finished_at);

-- One row per lease that ended without completing its job, the last 20 of each job. The token
-- is that of the lease that ended.
create table tenure_attempt (
  job_id     integer not null,
  token      integer not null,
  worker_id  text not null,
  attempt    integer not null,
  verb       text not null,
  outcome    text not null,
  -- When the lease was granted; a buffered one may never have started.
  started_at integer not null,
  ended_at   integer not null,
  error_type text,
  message    text,
  traceback  text,

  primary key (job_id, token),
  constraint attempt_verb_is_known
    check (verb in ('fail', 'release', 'acknowledge_cancel', 'sweep', 'reclaim')),
  constraint attempt_outcome_is_known
    check (outcome in ('failed', 'released', 'cancelled', 'lost', 'healed', 'timed out'))
) strict, without rowid;

-- A row exists only where somebody set something; enqueue never makes one.
create table tenure_queue (
  queue     text primary key,
  paused_at integer
) strict, without rowid;

create table tenure_install (
  only_row       integer primary key default 1,
  schema_version integer not null,

  constraint install_is_one_row check (only_row = 1)
) strict;

-- What people read: live and finished jobs under one column list.
create view tenure_jobs as
  select id, queue, kind, payload, priority, status,
         iif(status = 'queued', next_attempt_at, null) as next_attempt_at, attempt, max_attempts,
         token, worker_id, lease_expires_at, claimed_at, buffered, solo, cancel_requested, sealed_at,
         result, progress, timeout, meta, dedup_key, created_at, null as finished_at, last_error
    from tenure_job
   union all
  select id, queue, kind, payload, priority, status, null, attempt, max_attempts, token,
         worker_id, null, claimed_at, 0, 0, 0, null,
         result, progress, timeout, meta, dedup_key, created_at, finished_at, last_error
    from tenure_history;
