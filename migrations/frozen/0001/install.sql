-- Installs tenure with psql alone, in one transaction:
--
--   psql -f sql/install.sql                         in the schema tenure
--   psql -v schema="My-Queue" -f sql/install.sql    in another one, made when it is missing
--
-- Refuses a schema in which tenure is installed already: `tenure migrate` brings that one up to
-- date. Do not rename the schema afterwards: the functions have its name fixed.
--
-- This is the only list of the order in which the files are loaded.

\set ON_ERROR_STOP on
\set QUIET on
\set SHOW_CONTEXT never

\if :{?schema}
\else
\set schema tenure
\endif

begin;

set local tenure.schema = :'schema';
\ir prelude.sql

do $$
begin
  if to_regclass(format('%I.alembic_version', current_schema())) is not null then
    raise exception using
      errcode = 'duplicate_object',
      message = format('schema %I is in use already: it has a table alembic_version', current_schema()),
      hint    = 'To bring an older tenure up to date, run: tenure migrate';
  end if;
end;
$$;

\ir version.sql
\ir schema.sql

\ir functions/acknowledge_cancel.sql
\ir functions/add_partition.sql
\ir functions/backoff.sql
\ir functions/cancel.sql
\ir functions/cancel_requested.sql
\ir functions/channel.sql
\ir functions/check_count.sql
\ir functions/check_isolation.sql
\ir functions/check_json.sql
\ir functions/check_lease_args.sql
\ir functions/check_leases.sql
\ir functions/check_name.sql
\ir functions/check_new_job.sql
\ir functions/check_new_jobs.sql
\ir functions/check_outcomes.sql
\ir functions/check_queues.sql
\ir functions/check_span.sql
\ir functions/claim.sql
\ir functions/claim_job.sql
\ir functions/clear_partition.sql
\ir functions/clock.sql
\ir functions/complete.sql
\ir functions/cut_text.sql
\ir functions/due_clock.sql
\ir functions/end_queued.sql
\ir functions/enqueue.sql
\ir functions/enqueue_many.sql
\ir functions/error_line.sql
\ir functions/fail.sql
\ir functions/floor_setting.sql
\ir functions/grant_role.sql
\ir functions/guard.sql
\ir functions/held.sql
\ir functions/holder_pid.sql
\ir functions/install_key.sql
\ir functions/instant.sql
\ir functions/json_fits.sql
\ir functions/lane_floors.sql
\ir functions/lapsed.sql
\ir functions/locked_job.sql
\ir functions/maintain.sql
\ir functions/merged_floors.sql
\ir functions/microseconds.sql
\ir functions/next_due.sql
\ir functions/next_eligible_job_id.sql
\ir functions/next_lane.sql
\ir functions/notify_sleepers.sql
\ir functions/notify_waiters.sql
\ir functions/pause.sql
\ir functions/poll_floor.sql
\ir functions/publish_floors.sql
\ir functions/queue_key.sql
\ir functions/reclaim.sql
\ir functions/refuse.sql
\ir functions/release.sql
\ir functions/renew.sql
\ir functions/resume.sql
\ir functions/results.sql
\ir functions/retry.sql
\ir functions/schema_version.sql
\ir functions/seal.sql
\ir functions/seek_stragglers.sql
\ir functions/settle.sql
\ir functions/settle_jobs.sql
\ir functions/show_keys.sql
\ir functions/sleep_begin.sql
\ir functions/sleep_end.sql
\ir functions/sleep_keys.sql
\ir functions/sleep_settled.sql
\ir functions/somebody_sleeps.sql
\ir functions/stale_verdict.sql
\ir functions/stored_dedup_key.sql
\ir functions/sweep.sql
\ir functions/sweep_jobs.sql
\ir functions/trim_attempts.sql
\ir functions/try_wake.sql
\ir functions/update_owned.sql
\ir functions/wait_begin.sql
\ir functions/wait_key.sql
\ir functions/wake.sql
\ir functions/worker_seen.sql
\ir functions/writers_ended.sql

\ir views/jobs.sql
\ir views/attempts.sql
\ir views/queues.sql
\ir views/workers.sql
\ir views/failed_jobs.sql
\ir views/lapsed_jobs.sql

\ir grants.sql

do $$ begin perform maintain(); end $$;

commit;
