SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

CREATE SCHEMA tenure;

CREATE TYPE tenure.due AS (
	due_at timestamp with time zone,
	due_in interval
);

CREATE TYPE tenure.enqueued AS (
	job_id bigint,
	created boolean
);

CREATE TYPE tenure.enqueued_many AS (
	ordinal integer,
	job_id bigint,
	created boolean
);

CREATE TYPE tenure.held_lease AS (
	job_id bigint,
	token bigint,
	lease_expires_at timestamp with time zone
);

CREATE TYPE tenure.job_status AS ENUM (
    'queued',
    'running',
    'completed',
    'failed',
    'cancelled'
);

CREATE TYPE tenure.job_answer AS (
	job_id bigint,
	verdict text,
	status tenure.job_status,
	holder_pid integer
);

CREATE TYPE tenure.job_result AS (
	job_id bigint,
	token bigint,
	status tenure.job_status,
	result jsonb,
	error_type text,
	message text
);

CREATE TYPE tenure.job_verdict AS (
	job_id bigint,
	token bigint,
	verdict text,
	status tenure.job_status,
	next_attempt_at timestamp with time zone
);

CREATE TYPE tenure.lapsed_lease AS (
	job_id bigint,
	worker_id text,
	token bigint,
	lease_expires_at timestamp with time zone
);

CREATE TYPE tenure.lease AS (
	job_id bigint,
	token bigint,
	worker_id text,
	lease_expires_at timestamp with time zone,
	queue text,
	kind text,
	payload jsonb,
	priority smallint,
	attempt integer,
	max_attempts integer,
	timeout interval,
	buffered boolean,
	solo boolean,
	progress jsonb,
	meta jsonb,
	created_at timestamp with time zone,
	last_error text
);

CREATE TYPE tenure.new_job AS (
	queue text,
	kind text,
	payload jsonb,
	priority integer,
	run_at timestamp with time zone,
	delay interval,
	max_attempts integer,
	dedup_key text,
	timeout interval,
	retry_base interval,
	retry_cap interval,
	meta jsonb
);

CREATE TYPE tenure.queue_answer AS (
	queue text,
	verdict text,
	paused_at timestamp with time zone,
	holder_pid integer
);

CREATE TYPE tenure.renewal AS (
	job_id bigint,
	token bigint,
	outcome text,
	lease_expires_at timestamp with time zone,
	cancel_requested boolean
);

CREATE TYPE tenure.swept AS (
	job_id bigint,
	token bigint,
	outcome text,
	status tenure.job_status,
	next_attempt_at timestamp with time zone
);

CREATE FUNCTION tenure.acknowledge_cancel(p_job_id bigint, p_worker_id text, p_token bigint) RETURNS tenure.job_verdict
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
declare
  v_verdict job_verdict;
begin
  perform check_lease_args(p_job_id, p_worker_id, p_token);

  select s.* into v_verdict
    from settle_jobs(p_worker_id, array[p_job_id], array[p_token],
                     array['acknowledge_cancel']) as s;
  return v_verdict;
end;
$$;

CREATE FUNCTION tenure.add_partition(p_day date) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $_$
declare
  v_name text := 'job_history_' || to_char(p_day, 'YYYYMMDD');
  -- Spelled out: an instant turned into text has the zone and the style of the caller.
  v_from text := to_char(p_day, 'YYYY-MM-DD') || ' 00:00:00+00';
  v_to   text := to_char(p_day + 1, 'YYYY-MM-DD') || ' 00:00:00+00';
  v_rows bigint;
begin
  if to_regclass(v_name) is not null then
    return null;
  end if;

  -- A completion that had chosen the default partition would fail once this one is attached.
  if v_from::timestamptz < clock() + interval '1 day' then
    lock table only job_history in share row exclusive mode;
  end if;

  select count(*)
    into v_rows
    from (select from job_history_default as h
           where h.finished_at >= v_from::timestamptz and h.finished_at < v_to::timestamptz
           limit 10001) as r;
  if v_rows > 10000 then
    return null;
  end if;

  execute format('create table %I (like job_history including defaults including constraints)',
                 v_name);
  execute format('alter table %I add constraint %I check (finished_at >= %L and finished_at < %L)',
                 v_name, v_name || '_day', v_from, v_to);
  if v_rows > 0 then
    execute format(
      'with moved as (delete from job_history_default
                       where finished_at >= $1::timestamptz and finished_at < $2::timestamptz
                      returning *)
       insert into %I select * from moved', v_name)
      using v_from, v_to;
  end if;
  execute format('alter table job_history attach partition %I for values from (%L) to (%L)',
                 v_name, v_from, v_to);
  execute format('alter table %I drop constraint %I', v_name, v_name || '_day');
  return v_name;
end;
$_$;

CREATE FUNCTION tenure.backoff(p_base interval, p_cap interval, p_attempt integer) RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
declare
  -- In seconds: an interval would overflow.
  v_base double precision := extract(epoch from coalesce(p_base, interval '5 seconds'));
  v_cap  double precision := extract(epoch from coalesce(p_cap, interval '1 hour'));
begin
  return make_interval(
    secs => least(v_cap, v_base * power(2, least(p_attempt - 1, 30))) * (0.75 + 0.25 * random()));
end;
$$;

CREATE FUNCTION tenure.cancel(p_job_id bigint) RETURNS tenure.job_answer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET lock_timeout TO '2s'
    AS $$
declare
  v_job job;
begin
  begin
    v_job := locked_job(p_job_id);
  exception when lock_not_available then
    return row(p_job_id, 'deferred', null, holder_pid(p_job_id))::job_answer;
  end;

  if v_job.id is null then
    return row(p_job_id, case when v_job.status = 'cancelled' then 'already' else 'refused' end,
               v_job.status, null)::job_answer;
  elsif v_job.status = 'queued' then
    perform end_queued(p_job_id, 'cancelled');
    return row(p_job_id, 'ok', 'cancelled', null)::job_answer;
  elsif v_job.sealed_at is not null then
    return row(p_job_id, 'sealed', 'running', null)::job_answer;
  elsif v_job.cancel_requested then
    return row(p_job_id, 'already', 'running', null)::job_answer;
  end if;

  update job as j set cancel_requested = true where j.id = p_job_id;
  if (select i.notify from install as i) and pg_notification_queue_usage() <= 0.5 then
    perform pg_notify(channel(), 'c' || p_job_id);
  end if;
  return row(p_job_id, 'ok', 'running', null)::job_answer;
end;
$$;

CREATE FUNCTION tenure.cancel_requested(p_job_id bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
begin
  if p_job_id is null then
    perform refuse('job_id is null', 'Pass the id of a job.');
  end if;
  return coalesce((select j.cancel_requested from job as j where j.id = p_job_id), false);
end;
$$;

CREATE FUNCTION tenure.channel() RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
  select 'tenure_' || 'job'::regclass::oid;
$$;

CREATE FUNCTION tenure.check_count(p_what text, p_count bigint, p_most bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
  if coalesce(p_count between 1 and p_most, false) then
    return;
  end if;

  perform refuse(
    format('%s is %s', p_what, coalesce(p_count::text, 'null')),
    format('Use a number from 1 to %s.', p_most));
end;
$$;

CREATE FUNCTION tenure.check_isolation(p_verb text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception using
      errcode = 'TN006',
      message = format('%s needs READ COMMITTED, and this transaction is %s', p_verb,
                       upper(current_setting('transaction_isolation'))),
      hint    = 'Call it in a transaction of its own, in READ COMMITTED.';
  end if;
end;
$$;

CREATE FUNCTION tenure.check_json(p_what text, p_value jsonb, p_max_bytes integer) RETURNS void
    LANGUAGE plpgsql STRICT
    AS $_$
declare
  v_bytes integer := octet_length(p_value::text);
begin
  if v_bytes > p_max_bytes then
    perform refuse(
      format('%s is %s bytes long', p_what, v_bytes),
      format('Use at most %s bytes of JSON, and keep larger data elsewhere.', p_max_bytes));
  end if;

  -- Sixty-five levels need at least as many pairs of brackets.
  if v_bytes >= 130 and jsonb_path_exists(p_value, 'strict $.**{65}') then
    perform refuse(
      format('%s is nested too deeply', p_what),
      'Use at most 64 levels of arrays and objects.');
  end if;
end;
$_$;

CREATE FUNCTION tenure.check_lease_args(p_job_id bigint, p_worker_id text, p_token bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
begin
  if p_job_id is null or p_worker_id is null or p_token is null then
    perform refuse(
      'a lease is named by job_id, worker_id and token, and one of them is null',
      'Pass all three as claim returned them.');
  end if;
end;
$$;

CREATE FUNCTION tenure.check_leases(p_job_ids bigint[], p_tokens bigint[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
begin
  perform check_count('the number of leases', cardinality(p_job_ids), 1000);
  if cardinality(p_tokens) is distinct from cardinality(p_job_ids) then
    perform refuse(
      format('%s job_ids and %s tokens are given', cardinality(p_job_ids),
             coalesce(cardinality(p_tokens)::text, 'no')),
      'Pass one token for each job.');
  end if;
  if array_ndims(p_job_ids) > 1 or array_ndims(p_tokens) > 1 then
    perform refuse('job_ids or tokens is an array of arrays', 'Pass an array of numbers.');
  end if;
  if array_position(p_job_ids, null) is not null or array_position(p_tokens, null) is not null then
    perform refuse('a job_id or token is null', 'Pass them as claim returned them.');
  end if;
end;
$$;

CREATE FUNCTION tenure.check_name(p_what text, p_name text, p_max_bytes integer) RETURNS void
    LANGUAGE plpgsql
    AS $_$
begin
  if coalesce(octet_length(p_name) between 1 and p_max_bytes
              and p_name !~ '[\u0001-\u001f\u007f-\u009f]'
              and p_name !~ '^[ \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]'
              and p_name !~ '[ \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]$',
              false) then
    return;
  end if;

  perform refuse(
    case
      when p_name is null then format('%s is null', p_what)
      when octet_length(p_name) > p_max_bytes
      then format('%s is %s bytes long', p_what, octet_length(p_name))
      else format('%s %L is not a name', p_what, p_name)
    end,
    format('Use 1 to %s bytes without control characters or blank edges.', p_max_bytes));
end;
$_$;

CREATE FUNCTION tenure.check_new_job(p_queue text, p_kind text, p_payload jsonb, p_priority integer, p_run_at timestamp with time zone, p_delay interval, p_max_attempts integer, p_dedup_key text, p_timeout interval, p_retry_base interval, p_retry_cap interval, p_meta jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION tenure.check_new_jobs(p_jobs jsonb, p_shared jsonb) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
declare
  v_shared   new_job;
  v_ordinals bigint[];
  v_ordinal  bigint;
  v_keyed    boolean;
  v_job      new_job;
  v_message  text;
  v_hint     text;
begin
  if coalesce(jsonb_typeof(p_jobs) <> 'array', true) then
    perform refuse('jobs is not a JSON array', 'Pass an array of objects.');
  end if;
  perform check_count('the number of jobs', jsonb_array_length(p_jobs), 10000);
  if jsonb_typeof(p_shared) <> 'object' then
    perform refuse('shared is not a JSON object', 'Pass an object, or null.');
  end if;

  -- Of each kind the first, and the first of those that check_new_job is sure to refuse.
  begin
    v_shared := jsonb_populate_record(null::new_job, p_shared);
    select array_agg(distinct c.ordinal order by c.ordinal) filter (where c.ordinal is not null),
           bool_or(k.keyed)
      into v_ordinals, v_keyed
      from (select min(n.ordinality) as first,
                   min(n.ordinality) filter (
                     where not json_fits(n.payload, 1048576)
                        or not json_fits(n.meta, 16384)
                        or octet_length(n.dedup_key) not between 1 and 8192) as odd,
                   count(n.dedup_key) > 0 as keyed
              from jsonb_populate_recordset(v_shared, p_jobs) with ordinality as n
             group by n.queue, n.kind, n.priority, n.run_at, n.delay, n.max_attempts, n.timeout,
                      n.retry_base, n.retry_cap) as k,
           unnest(array[k.first, k.odd]) as c(ordinal);
  exception when data_exception then
    get stacked diagnostics v_message = message_text;
    perform refuse(format('jobs: %s', v_message),
                   'Times are ISO 8601 text, durations interval text such as 90 seconds.');
  end;

  begin
    foreach v_ordinal in array v_ordinals loop
      v_job := jsonb_populate_record(v_shared, p_jobs -> (v_ordinal - 1)::integer);
      perform check_new_job(v_job.queue, v_job.kind, v_job.payload, coalesce(v_job.priority, 5),
                            v_job.run_at, v_job.delay, coalesce(v_job.max_attempts, 5),
                            v_job.dedup_key, v_job.timeout, v_job.retry_base, v_job.retry_cap,
                            v_job.meta);
    end loop;
  exception when invalid_parameter_value then
    get stacked diagnostics v_message = message_text, v_hint = pg_exception_hint;
    perform refuse(format('jobs[%s]: %s', v_ordinal - 1, v_message), v_hint);
  end;
  return v_keyed;
end;
$$;

CREATE FUNCTION tenure.check_outcomes(p_worker_id text, p_job_ids bigint[], p_verbs text[], p_results jsonb[], p_errors jsonb[], p_delays interval[], p_started boolean[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
declare
  v_jobs integer := cardinality(p_job_ids);
  v_bad  text;
begin
  if p_worker_id is null then
    perform refuse('worker_id is null', 'Pass the worker_id that claimed the jobs.');
  end if;

  if v_jobs is distinct from cardinality(p_verbs)
     or v_jobs <> coalesce(cardinality(p_results), v_jobs)
     or v_jobs <> coalesce(cardinality(p_errors), v_jobs)
     or v_jobs <> coalesce(cardinality(p_delays), v_jobs)
     or v_jobs <> coalesce(cardinality(p_started), v_jobs) then
    perform refuse(format('%s jobs are given, and an array of another length', v_jobs),
                   'Give each array one element for each job, or null for all.');
  end if;

  select coalesce(a.verb, 'null') into v_bad from unnest(p_verbs) as a(verb)
   where coalesce(a.verb not in ('complete', 'fail', 'release', 'acknowledge_cancel'), true)
   limit 1;
  if found then
    perform refuse(format('verb is %s', v_bad),
                   'Use complete, fail, release or acknowledge_cancel.');
  end if;

  select a.job_id into v_bad from unnest(p_job_ids) as a(job_id)
   group by a.job_id having count(*) > 1 limit 1;
  if found then
    perform refuse(format('job %s is given twice', v_bad), 'Settle each job once.');
  end if;

  perform check_json('result', a.result, 1048576)
     from unnest(p_results) as a(result);
  perform check_span('delay', a.delay, '0', '3653 days')
     from unnest(p_delays) as a(delay) where a.delay is not null;

  select a.error into v_bad from unnest(p_errors) as a(error)
   where jsonb_typeof(a.error) <> 'object'
      or jsonb_typeof(a.error -> 'retryable') not in ('boolean', 'null')
      or jsonb_typeof(a.error -> 'cancel') not in ('boolean', 'null')
   limit 1;
  if found then
    perform refuse(format('error %s is not an error object', left(v_bad, 100)),
                   'Use {"error_type": text, "message": text, "traceback": text, '
                   '"retryable": boolean, "cancel": boolean}.');
  end if;
end;
$$;

CREATE FUNCTION tenure.check_queues(p_queues text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
  v_queue text;
begin
  perform check_count('the number of queues', cardinality(p_queues), 1000);
  foreach v_queue in array p_queues loop
    perform check_name('queue', v_queue, 128);
  end loop;
end;
$$;

CREATE FUNCTION tenure.check_span(p_what text, p_span interval, p_least interval, p_most interval) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
  if coalesce(p_span between p_least and p_most
              and least(extract(year from p_span), extract(month from p_span),
                        extract(day from p_span), extract(hour from p_span),
                        extract(minute from p_span), extract(second from p_span)) >= 0,
              false) then
    return;
  end if;

  perform refuse(
    format('%s is %s', p_what, coalesce(p_span::text, 'null')),
    format('Use a duration from %s to %s, no part of it negative.', p_least, p_most));
end;
$$;

CREATE FUNCTION tenure.claim(p_queues text[], p_worker_id text, p_max_jobs integer DEFAULT 1, p_lease_for interval DEFAULT '00:00:30'::interval, p_solo boolean DEFAULT true) RETURNS SETOF tenure.lease
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  -- T may be noted only if this transaction had no xid before T was read.
  v_fresh  boolean := pg_current_xact_id_if_assigned() is null;
  v_t      timestamptz := clock();
  v_now    timestamptz;
  v_left   integer := p_max_jobs;
  v_take   integer;
  v_got    integer;
  v_solo   boolean := coalesce(p_solo, true);
  v_seen   text[] := '{}';
  v_queue  text;
  v_row    queue;
  v_floors bigint[];
  v_met    boolean;
  v_lane   integer;
begin
  perform check_isolation('claim'),
          check_count('the number of queues', cardinality(p_queues), 1000),
          check_name('worker_id', p_worker_id, 256),
          check_count('max_jobs', p_max_jobs, 1000),
          check_span('lease_for', p_lease_for, '100 milliseconds', '24 hours');

  perform pg_current_xact_id();
  -- Not T: a job due between the two may be claimed, and no floor may rest on this reading.
  v_now := clock();

  foreach v_queue in array p_queues loop
    exit when v_left = 0;
    if v_queue is null then
      perform refuse('a queue is null', 'Pass the names of queues.');
    end if;
    continue when v_queue = any (v_seen);
    v_seen := v_seen || v_queue;

    select q.* into v_row from queue as q where q.queue = v_queue;
    continue when v_row.paused_at is not null;

    v_floors := lane_floors(v_queue, v_row, case when v_fresh then v_t end);
    v_met := false;
    v_lane := 0;
    loop
      v_lane := next_lane(v_queue, v_lane, v_floors);
      exit when v_lane is null;
      if v_floors[4 + v_lane] < 0 then
        v_floors[4 + v_lane] := 0;
        v_met := true;
      end if;
      v_take := case when v_lane % 2 = 1 then v_left when v_solo then 1 else 0 end;
      continue when v_take = 0;

      return query
      with claimed as (
        update job as j
           set status = 'running',
               worker_id = p_worker_id,
               token = j.token + 1,
               attempt = j.attempt + 1,
               claimed_at = v_now,
               lease_expires_at = date_trunc('milliseconds',
                                             least(v_now + p_lease_for, v_now + j.timeout)),
               buffered = p_max_jobs > 1 and not j.solo
         -- An array, not IN: a join may run a limited subquery again for each row and lock
         -- more than the limit.
         where j.ctid = any (array(
                 select c.ctid
                   from job as c
                  where c.status = 'queued'
                    and c.queue = v_queue
                    and c.priority = (v_lane - 1) / 2
                    and c.solo = (v_lane % 2 = 0)
                    and c.next_attempt_at >= instant(v_floors[4 + v_lane])
                    and c.next_attempt_at <= v_now
                  order by c.next_attempt_at, c.id
                  limit v_take
                    for no key update skip locked))
        returning j.id, j.token, j.worker_id, j.lease_expires_at, j.queue, j.kind, j.payload,
                  j.priority, j.attempt, j.max_attempts, j.timeout, j.buffered, j.solo,
                  j.progress, j.meta, j.created_at, j.last_error, j.next_attempt_at
      )
      -- A TID scan returns rows in the order of the heap.
      select c.id, c.token, c.worker_id, c.lease_expires_at, c.queue, c.kind, c.payload,
             c.priority, c.attempt, c.max_attempts, c.timeout, c.buffered, c.solo, c.progress,
             c.meta, c.created_at, c.last_error
        from claimed as c
       order by c.next_attempt_at, c.id;
      get diagnostics v_got = row_count;

      v_left := v_left - v_got;
      if v_lane % 2 = 0 and v_got > 0 then
        v_solo := false;
      end if;
      exit when v_left = 0;
    end loop;

    -- A lane met is kept once T is noted; before that there is nothing to step over it with.
    if v_met and v_floors[2] > 0 then
      perform set_config(floor_setting(v_queue), v_floors::text, false);
    end if;
  end loop;
end;
$$;

CREATE FUNCTION tenure.claim_job(p_job_id bigint, p_worker_id text, p_lease_for interval DEFAULT '00:00:30'::interval) RETURNS SETOF tenure.lease
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
declare
  v_now timestamptz;
begin
  perform check_isolation('claim_job');
  if p_job_id is null then
    perform refuse('job_id is null', 'Pass the id that next_eligible_job_id returned.');
  end if;
  perform check_name('worker_id', p_worker_id, 256);
  perform check_span('lease_for', p_lease_for, '100 milliseconds', '24 hours');

  perform pg_current_xact_id();
  v_now := clock();

  return query
  update job as j
     set status = 'running',
         worker_id = p_worker_id,
         token = j.token + 1,
         attempt = j.attempt + 1,
         claimed_at = v_now,
         lease_expires_at = date_trunc('milliseconds',
                                       least(v_now + p_lease_for, v_now + j.timeout))
   where j.ctid = any (array(
           select c.ctid
             from job as c
            where c.id = p_job_id
              -- As text: with stale statistics a scan of all that is queued looks cheap.
              and c.status::text = 'queued'
              and c.next_attempt_at <= v_now
              and not exists (select from queue as q
                               where q.queue = c.queue
                                 and q.paused_at is not null)
              for no key update of c skip locked))
  returning j.id, j.token, j.worker_id, j.lease_expires_at, j.queue, j.kind, j.payload,
            j.priority, j.attempt, j.max_attempts, j.timeout, j.buffered, j.solo, j.progress,
            j.meta, j.created_at, j.last_error;
end;
$$;

CREATE FUNCTION tenure.clear_partition(p_name text, p_limit integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $_$
declare
  v_deleted integer;
begin
  execute format(
    'delete from attempt
      where ctid = any (array(
              select a.ctid from %I as h join attempt as a on a.job_id = h.id limit $1))',
    p_name)
    using p_limit;
  get diagnostics v_deleted = row_count;
  return v_deleted;
end;
$_$;

CREATE FUNCTION tenure.clock() RETURNS timestamp with time zone
    LANGUAGE sql
    AS $$
  select pg_catalog.clock_timestamp();
$$;

CREATE FUNCTION tenure.complete(p_job_id bigint, p_worker_id text, p_token bigint, p_result jsonb DEFAULT NULL::jsonb) RETURNS tenure.job_verdict
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
declare
  v_verdict job_verdict;
begin
  perform check_lease_args(p_job_id, p_worker_id, p_token);
  perform check_json('result', p_result, 1048576);

  select s.* into v_verdict
    from settle_jobs(p_worker_id, array[p_job_id], array[p_token], array['complete'],
                     p_results => array[p_result]) as s;
  return v_verdict;
end;
$$;

CREATE FUNCTION tenure.cut_text(p_text text, p_max_bytes integer) RETURNS text
    LANGUAGE plpgsql STRICT SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
declare
  v_bytes bytea;
  v_keep  integer := p_max_bytes - octet_length('…');
begin
  if octet_length(p_text) <= p_max_bytes then
    return p_text;
  end if;

  v_bytes := convert_to(left(p_text, p_max_bytes), 'UTF8');
  -- A byte 10xxxxxx continues a character: cut before the first byte of one.
  while get_byte(v_bytes, v_keep) & 192 = 128 loop
    v_keep := v_keep - 1;
  end loop;
  return convert_from(substring(v_bytes from 1 for v_keep), 'UTF8') || '…';
end;
$$;

CREATE FUNCTION tenure.due_clock() RETURNS timestamp with time zone
    LANGUAGE plpgsql
    AS $$
begin
  lock table job in row exclusive mode;
  perform pg_current_xact_id();
  return clock();
end;
$$;

CREATE FUNCTION tenure.end_queued(p_job_id bigint, p_status tenure.job_status) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
begin
  with ended as (
    delete from job as j
     where j.id = p_job_id
       and j.status::text = 'queued'
    returning j.*
  )
  insert into job_history
         (id, token, token_limit, created_at, claimed_at, attempt, max_attempts, status,
          priority, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload,
          meta, progress, result, last_error, finished_at)
  select e.id, e.token, e.token_limit, e.created_at, e.claimed_at, e.attempt, e.max_attempts,
         p_status, e.priority, e.retry_base, e.retry_cap, e.timeout, e.queue, e.kind,
         e.worker_id, e.dedup_key, e.payload, e.meta, e.progress, e.result, e.last_error, clock()
    from ended as e;

  perform notify_waiters(array[p_job_id]);
end;
$$;

CREATE FUNCTION tenure.enqueue(p_queue text, p_kind text, p_payload jsonb DEFAULT NULL::jsonb, p_priority integer DEFAULT 5, p_run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, p_delay interval DEFAULT NULL::interval, p_max_attempts integer DEFAULT 5, p_dedup_key text DEFAULT NULL::text, p_timeout interval DEFAULT NULL::interval, p_retry_base interval DEFAULT NULL::interval, p_retry_cap interval DEFAULT NULL::interval, p_meta jsonb DEFAULT NULL::jsonb, p_notify boolean DEFAULT true) RETURNS tenure.enqueued
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  v_now      timestamptz;
  v_due      timestamptz;
  v_key      text;
  v_enqueued enqueued;
begin
  perform check_new_job(p_queue, p_kind, p_payload, p_priority, p_run_at, p_delay, p_max_attempts,
                        p_dedup_key, p_timeout, p_retry_base, p_retry_cap, p_meta);

  v_now := due_clock();
  v_due := greatest(v_now, coalesce(p_run_at, v_now + p_delay));
  v_key := stored_dedup_key(p_dedup_key);
  loop
    insert into job as j
           (queue, kind, payload, priority, next_attempt_at, max_attempts, token_limit, dedup_key,
            timeout, retry_base, retry_cap, meta, created_at)
    values (p_queue, p_kind, p_payload, p_priority, v_due, p_max_attempts,
            10 * p_max_attempts + 100, v_key, p_timeout, p_retry_base, p_retry_cap, p_meta, v_now)
        on conflict (queue, dedup_key) where dedup_key is not null do nothing
    returning j.id, true into v_enqueued;
    exit when found;

    select j.id, false
      into v_enqueued
      from job as j
     where j.queue = p_queue
       and j.dedup_key = v_key;
    exit when found;
    -- The job with the key ended in between: the key is free.
  end loop;

  if coalesce(p_notify, true) and v_enqueued.created and v_due < v_now + poll_floor() then
    perform notify_sleepers(p_queue);
  end if;
  return v_enqueued;
end;
$$;

CREATE FUNCTION tenure.enqueue_many(p_jobs jsonb, p_notify boolean DEFAULT true, p_shared jsonb DEFAULT NULL::jsonb) RETURNS SETOF tenure.enqueued_many
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
declare
  v_keyed  boolean := check_new_jobs(p_jobs, p_shared);
  v_shared new_job := jsonb_populate_record(null::new_job, p_shared);
  v_now    timestamptz := due_clock();
  v_new    bigint[];
  v_ids    bigint[];
  v_made   bigint;
  v_queue  text;
begin
  -- Numbered before they are inserted, where there are keys in their order: jobs due at one
  -- instant run in the order given.
  v_new := array(select nextval('job_id_seq')
                   from generate_series(1, jsonb_array_length(p_jobs)));

  if not v_keyed then
    -- The same without a conflict, for which each row costs half as much again.
    insert into job
           (id, queue, kind, payload, priority, next_attempt_at, max_attempts, token_limit,
            timeout, retry_base, retry_cap, meta, created_at)
           overriding system value
    select v_new[n.ordinality], n.queue, n.kind, n.payload, coalesce(n.priority, 5),
           greatest(v_now, coalesce(n.run_at, v_now + n.delay)), coalesce(n.max_attempts, 5),
           10 * coalesce(n.max_attempts, 5) + 100, n.timeout, n.retry_base, n.retry_cap, n.meta,
           v_now
      from jsonb_populate_recordset(v_shared, p_jobs) with ordinality as n;
    v_ids := v_new;
  end if;

  while v_keyed loop
    begin
      insert into job as j
             (id, queue, kind, payload, priority, next_attempt_at, max_attempts, token_limit,
              dedup_key, timeout, retry_base, retry_cap, meta, created_at)
             overriding system value
      select v_new[n.ordinality], n.queue, n.kind, n.payload, coalesce(n.priority, 5),
             greatest(v_now, coalesce(n.run_at, v_now + n.delay)), coalesce(n.max_attempts, 5),
             10 * coalesce(n.max_attempts, 5) + 100, stored_dedup_key(n.dedup_key), n.timeout,
             n.retry_base, n.retry_cap, n.meta, v_now
        from jsonb_populate_recordset(v_shared, p_jobs) with ordinality as n
       order by n.queue, n.dedup_key nulls first, n.ordinality
          on conflict (queue, dedup_key) where dedup_key is not null do nothing;
      get diagnostics v_made = row_count;
      v_ids := v_new;
      exit when v_made = cardinality(v_new);

      select array_agg(case when n.dedup_key is null then v_new[n.ordinality] else j.id end
                       order by n.ordinality)
        into v_ids
        from jsonb_populate_recordset(v_shared, p_jobs) with ordinality as n
        left join job as j
          on j.queue = n.queue
         and j.dedup_key = stored_dedup_key(n.dedup_key);
      exit when array_position(v_ids, null) is null;

      -- A job that had one of the keys ended in between. Taking it now, after later ones, could
      -- deadlock with another batch: let go of all, and take them again in order.
      raise no_data_found;
    exception when no_data_found then
      null;
    end;
  end loop;

  return query
  select i.ordinality::integer, i.id, i.id = v_new[i.ordinality]
    from unnest(v_ids) with ordinality as i(id, ordinality)
   order by i.ordinality;

  if coalesce(p_notify, true) then
    for v_queue in
      select distinct n.queue
        from jsonb_populate_recordset(v_shared, p_jobs) with ordinality as n
       where v_ids[n.ordinality] = v_new[n.ordinality]
         and coalesce(n.run_at, v_now + n.delay, v_now) < v_now + poll_floor()
    loop
      perform notify_sleepers(v_queue);
    end loop;
  end if;
end;
$$;

CREATE FUNCTION tenure.error_line(p_error jsonb) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
begin
  return cut_text(
    concat_ws(': ', nullif(p_error ->> 'error_type', ''), nullif(p_error ->> 'message', '')),
    8192);
end;
$$;

CREATE FUNCTION tenure.fail(p_job_id bigint, p_worker_id text, p_token bigint, p_error_type text, p_message text DEFAULT ''::text, p_traceback text DEFAULT NULL::text, p_retryable boolean DEFAULT true, p_delay interval DEFAULT NULL::interval, p_cancel boolean DEFAULT false) RETURNS tenure.job_verdict
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
declare
  v_verdict job_verdict;
begin
  perform check_lease_args(p_job_id, p_worker_id, p_token);
  if p_delay is not null then
    perform check_span('delay', p_delay, '0', '3653 days');
  end if;

  select s.* into v_verdict
    from settle_jobs(
           p_worker_id, array[p_job_id], array[p_token], array['fail'],
           p_errors => array[jsonb_build_object('error_type', p_error_type,
                                                'message', p_message,
                                                'traceback', p_traceback,
                                                'retryable', p_retryable,
                                                'cancel', p_cancel)],
           p_delays => array[p_delay]) as s;
  return v_verdict;
end;
$$;

CREATE FUNCTION tenure.floor_setting(p_queue text) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
begin
  return 'tenure.floor_' || 'job'::regclass::oid || '_'
         || encode(convert_to(p_queue, 'UTF8'), 'hex');
end;
$$;

CREATE FUNCTION tenure.grant_role(p_role name, p_what text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
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

CREATE FUNCTION tenure.guard(p_job_id bigint, p_worker_id text, p_token bigint, p_require_cancel_not_requested boolean DEFAULT true, p_lease_for interval DEFAULT '00:00:30'::interval) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET lock_timeout TO '2s'
    AS $$
declare
  v_require boolean := coalesce(p_require_cancel_not_requested, true);
  v_now     timestamptz := clock();
  v_idle    bigint;
begin
  perform check_lease_args(p_job_id, p_worker_id, p_token);
  perform check_span('lease_for', p_lease_for, '100 milliseconds', '24 hours');

  begin
    update job as j
       set lease_expires_at = greatest(
             j.lease_expires_at,
             date_trunc('milliseconds', least(v_now + p_lease_for, j.claimed_at + j.timeout)))
     where j.id = p_job_id
       and j.token = p_token
       and j.worker_id = p_worker_id
       and not (j.cancel_requested and v_require);
  exception when lock_not_available then
    raise exception using
      errcode = 'TN005',
      message = format('job %s is held by another transaction', p_job_id),
      hint    = 'Try again, in a new transaction.';
  end;

  if not found then
    if exists (select from job as j
                where j.id = p_job_id
                  and j.token = p_token
                  and j.worker_id = p_worker_id
                  and j.cancel_requested) then
      raise exception using
        errcode = 'TN002',
        message = format('the cancellation of job %s was requested', p_job_id),
        hint    = 'Stop, and call acknowledge_cancel.';
    end if;
    raise exception using
      errcode = 'TN001',
      message = format('lease %s on job %s is lost', p_token, p_job_id),
      hint    = 'Discard the work: a later lease has the job, or it has ended.';
  end if;

  v_idle := (extract(epoch from current_setting('idle_in_transaction_session_timeout')::interval)
             * 1000)::bigint;
  if v_idle = 0 or v_idle > extract(epoch from p_lease_for) * 1000 then
    perform set_config('idle_in_transaction_session_timeout',
                       ceil(extract(epoch from p_lease_for) * 1000)::text, true);
  end if;
end;
$$;

CREATE FUNCTION tenure.held(p_worker_id text) RETURNS SETOF tenure.held_lease
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
begin
  if p_worker_id is null then
    perform refuse('worker_id is null', 'Pass the worker_id that claimed the jobs.');
  end if;

  return query
  select j.id, j.token, j.lease_expires_at
    from job as j
   where j.status = 'running'
     and j.worker_id = p_worker_id
   order by j.claimed_at, j.id;
end;
$$;

CREATE FUNCTION tenure.holder_pid(p_job_id bigint) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
declare
  v_pids integer[];
begin
  v_pids := array(
    select l.pid
      from job as j
      join pg_locks as l on l.transactionid = j.xmax
     where j.id = p_job_id
       -- Its own lock, not that of one who waits for it.
       and l.mode = 'ExclusiveLock');
  if cardinality(v_pids) = 1 then
    return v_pids[1];
  end if;

  v_pids := array(
    select distinct l.pid
      from pg_locks as l
     where l.database = (select d.oid from pg_database as d where d.datname = current_database())
       and l.relation = 'job'::regclass
       and l.mode in ('RowShareLock', 'RowExclusiveLock')
       and l.pid <> pg_backend_pid());
  return case when cardinality(v_pids) = 1 then v_pids[1] end;
end;
$$;

CREATE FUNCTION tenure.install_key() RETURNS integer
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
  -- An oid has 32 bits and no sign.
  select ('job'::regclass::oid::bigint::bit(32))::integer;
$$;

CREATE FUNCTION tenure.instant(p_microseconds bigint) RETURNS timestamp with time zone
    LANGUAGE sql STABLE
    AS $$
  select timestamptz '1970-01-01 00:00:00+00' + p_microseconds * interval '1 microsecond';
$$;

CREATE FUNCTION tenure.json_fits(p_value jsonb, p_max_bytes integer) RETURNS boolean
    LANGUAGE sql STABLE
    AS $_$
  -- Sixty-five levels take eight bytes each at the least.
  select octet_length(p_value::text) <= p_max_bytes
     and (pg_column_size(p_value) < 520 or not jsonb_path_exists(p_value, 'strict $.**{65}'));
$_$;

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE tenure.queue (
    queue text NOT NULL,
    paused_at timestamp with time zone,
    floors bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    floors_published_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    floor_generation integer DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');

CREATE FUNCTION tenure.lane_floors(p_queue text, p_row tenure.queue, p_t timestamp with time zone) RETURNS bigint[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  c_lanes      constant integer := 20;
  v_generation bigint := coalesce(p_row.floor_generation, 0);
  v_now        bigint := microseconds(coalesce(p_t, clock()));
  v_setting    text := current_setting(floor_setting(p_queue), true);
  v_floors     bigint[];
  v_first      timestamptz;
  v_closer     boolean;
begin
  begin
    v_floors := v_setting::bigint[];
    if array_dims(v_floors) is distinct from '[1:24]' or array_position(v_floors, null) is not null
       or v_floors[1] <> v_generation or v_now < any (v_floors[4:24]) or v_now < v_floors[2] then
      v_floors := null;
    end if;
  exception when data_exception then
    v_floors := null;  -- somebody's own text
  end;
  if v_floors is null then
    v_floors := array[v_generation, 0, 0, 0] || array_fill(-1::bigint, array[c_lanes]);
    v_floors := merged_floors(v_floors, p_row.floors, v_now);
  end if;

  if p_t is null then
    return v_floors;
  end if;

  if v_floors[2] > 0 then
    if v_now < v_floors[2] + 100000 then
      return v_floors;
    end if;

    v_closer := v_now >= v_floors[4] + 1000000;
    if not writers_ended(v_floors[3], v_closer) then
      if v_closer then
        v_floors[4] := v_now;
        perform set_config(floor_setting(p_queue), v_floors::text, false);
      end if;
      return v_floors;
    end if;

    v_floors := merged_floors(v_floors, p_row.floors, v_now);
    for v_lane in 1 .. c_lanes loop
      continue when v_floors[4 + v_lane] < 0;
      select j.next_attempt_at
        into v_first
        from job as j
       where j.status = 'queued'
         and j.queue = p_queue
         and j.priority = (v_lane - 1) / 2
         and j.solo = (v_lane % 2 = 0)
         and j.next_attempt_at >= instant(v_floors[4 + v_lane])
       order by j.next_attempt_at, j.id
       limit 1;
      v_floors[4 + v_lane] := greatest(v_floors[4 + v_lane],
                                     least(v_floors[2], microseconds(v_first)));
    end loop;

    if p_row.floors_published_at < p_t - interval '30 seconds' then
      perform publish_floors(p_queue, v_floors, p_t);
    end if;
  end if;

  v_floors[2] := v_now;
  v_floors[3] := pg_current_xact_id()::text::bigint;
  perform set_config(floor_setting(p_queue), v_floors::text, false);
  return v_floors;
end;
$$;

CREATE FUNCTION tenure.lapsed(p_limit integer DEFAULT 100) RETURNS SETOF tenure.lapsed_lease
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  v_now timestamptz := clock();
begin
  perform check_count('limit', p_limit, 10000);

  return query
  select j.id, j.worker_id, j.token, j.lease_expires_at
    from job as j
   where j.status = 'running'
     and j.lease_expires_at <= v_now
   order by j.claimed_at, j.id
   limit p_limit;
end;
$$;

CREATE TABLE tenure.job (
    id bigint NOT NULL,
    next_attempt_at timestamp with time zone NOT NULL,
    token bigint DEFAULT 0 NOT NULL,
    token_limit bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    claimed_at timestamp with time zone,
    lease_expires_at timestamp with time zone,
    sealed_at timestamp with time zone,
    attempt integer DEFAULT 0 NOT NULL,
    max_attempts integer NOT NULL,
    status tenure.job_status DEFAULT 'queued'::tenure.job_status NOT NULL,
    priority smallint NOT NULL,
    solo boolean DEFAULT false NOT NULL,
    buffered boolean DEFAULT false NOT NULL,
    reclaimed boolean DEFAULT false NOT NULL,
    cancel_requested boolean DEFAULT false NOT NULL,
    retry_base interval,
    retry_cap interval,
    timeout interval,
    queue text NOT NULL,
    kind text NOT NULL,
    worker_id text,
    dedup_key text,
    payload jsonb,
    meta jsonb,
    progress jsonb,
    result jsonb,
    last_error text,
    CONSTRAINT job_counts_are_in_range CHECK ((((attempt >= 0) AND (attempt <= max_attempts)) AND (token >= 0) AND ((priority >= 0) AND (priority <= 9)))),
    CONSTRAINT job_flags_of_a_lease_end_with_it CHECK (((status = 'running'::tenure.job_status) OR (NOT (buffered OR reclaimed)))),
    CONSTRAINT job_is_live CHECK ((status = ANY (ARRAY['queued'::tenure.job_status, 'running'::tenure.job_status]))),
    CONSTRAINT job_queued_has_attempts_left_and_no_cancel_pending CHECK (((status <> 'queued'::tenure.job_status) OR ((attempt < max_attempts) AND (NOT cancel_requested)))),
    CONSTRAINT job_runs_exactly_while_a_worker_has_a_whole_lease CHECK ((((status = 'running'::tenure.job_status) = (worker_id IS NOT NULL)) AND ((worker_id IS NULL) = (claimed_at IS NULL)) AND ((worker_id IS NULL) = (lease_expires_at IS NULL)))),
    CONSTRAINT job_sealed_only_while_running CHECK (((sealed_at IS NULL) OR ((status = 'running'::tenure.job_status) AND (NOT cancel_requested))))
)
WITH (fillfactor='45', autovacuum_vacuum_scale_factor='0.0', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.0', autovacuum_vacuum_insert_threshold='50000', autovacuum_vacuum_cost_delay='0', vacuum_truncate=off);

COMMENT ON TABLE tenure.job IS 'Live jobs. A row moves to job_history when its job ends: let no foreign key point here.';

COMMENT ON COLUMN tenure.job.token IS 'Fencing token: minted by each claim, reclaim and sweep; only the latest may write.';

COMMENT ON COLUMN tenure.job.token_limit IS 'Ends a claim-and-give-back loop: at this token a release or a refund fails the job.';

COMMENT ON COLUMN tenure.job.solo IS 'Suspected of killing its worker: handed out at most one per claim, never buffered.';

COMMENT ON COLUMN tenure.job.buffered IS 'Claimed in a batch, so it may not have started: a lapse is refunded and makes it solo.';

COMMENT ON COLUMN tenure.job.reclaimed IS 'The lease was taken over from a worker that may have started the job.';

CREATE FUNCTION tenure.locked_job(p_job_id bigint) RETURNS tenure.job
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  v_job  job;
  v_live boolean;
begin
  if p_job_id is null then
    perform refuse('job_id is null', 'Pass the id of a job.');
  end if;

  loop
    select j.* into v_job from job as j where j.id = p_job_id for update;
    exit when found;

    -- Rows move between the two tables, so both are read in one statement.
    select r.live, r.status
      into v_live, v_job.status
      from (select true as live, j.status from job as j where j.id = p_job_id
            union all
            select false, h.status from job_history as h where h.id = p_job_id) as r
     limit 1;
    if not found then
      raise exception using
        errcode = 'TN004',
        message = format('job %s is unknown', p_job_id),
        hint    = 'Check the id; finished jobs are kept for a limited time.';
    end if;
    exit when not v_live;
  end loop;
  return v_job;
end;
$$;

CREATE FUNCTION tenure.maintain() RETURNS SETOF text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET lock_timeout TO '50ms'
    AS $_$
declare
  v_today date := (clock() at time zone 'UTC')::date;
  v_left  integer := 10000;
  v_name  text;
  v_old   text[] := '{}';
begin
  begin
    perform from install for no key update;
  exception when lock_not_available then
    return next 'left everything to another call at work';
    return;
  end;

  delete from worker as w where w.last_seen_at < clock() - interval '1 day';

  -- Before the first lock on job_history, which holds completions up until the end.
  for v_name in
    select c.relname
      from pg_inherits as i
      join pg_class as c on c.oid = i.inhrelid
     where i.inhparent = 'job_history'::regclass
       and c.relname ~ '^job_history_[0-9]{8}$'
       and substr(c.relname, 13)::date < v_today - 30
     order by c.relname
  loop
    v_left := v_left - clear_partition(v_name, v_left);
    if v_left = 0 then
      return next format('left the attempts of %s for the next call', v_name);
      exit;
    end if;
    v_old := v_old || v_name;
  end loop;

  for v_day in 0 .. 7 loop
    begin
      v_name := add_partition(v_today + v_day);
      if v_name is not null then
        return next 'made ' || v_name;
      end if;
    exception when lock_not_available then
      return next format('left the partition of %s for the next call', v_today + v_day);
    end;
  end loop;

  foreach v_name in array v_old loop
    begin
      execute format('drop table %I', v_name);
      return next 'dropped ' || v_name;
    exception when lock_not_available then
      return next format('left %s for the next call', v_name);
    end;
  end loop;
end;
$_$;

CREATE FUNCTION tenure.merged_floors(p_floors bigint[], p_published bigint[], p_now bigint) RETURNS bigint[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
begin
  for v_pair in 1 .. coalesce(cardinality(p_published), 0) / 2 loop
    if p_published[2 * v_pair - 1] between 1 and 20 and p_published[2 * v_pair] <= p_now then
      p_floors[4 + p_published[2 * v_pair - 1]] :=
        greatest(p_floors[4 + p_published[2 * v_pair - 1]], p_published[2 * v_pair]);
    end if;
  end loop;
  return p_floors;
end;
$$;

CREATE FUNCTION tenure.microseconds(p_instant timestamp with time zone) RETURNS bigint
    LANGUAGE sql STABLE
    AS $$
  select (extract(epoch from p_instant) * 1000000)::bigint;
$$;

CREATE FUNCTION tenure.next_due(p_queues text[]) RETURNS tenure.due
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  v_queue  text;
  v_row    queue;
  v_floors bigint[];
  v_lane   integer;
  v_first  timestamptz;
  v_due    due;
begin
  perform check_count('the number of queues', cardinality(p_queues), 1000);

  foreach v_queue in array p_queues loop
    select q.* into v_row from queue as q where q.queue = v_queue;
    continue when v_row.paused_at is not null;

    v_floors := lane_floors(v_queue, v_row, null);
    v_lane := 0;
    loop
      v_lane := next_lane(v_queue, v_lane, v_floors);
      exit when v_lane is null;

      select j.next_attempt_at
        into v_first
        from job as j
       where j.status = 'queued'
         and j.queue = v_queue
         and j.priority = (v_lane - 1) / 2
         and j.solo = (v_lane % 2 = 0)
         and j.next_attempt_at >= instant(greatest(v_floors[4 + v_lane], 0))
       order by j.next_attempt_at, j.id
       limit 1;
      v_due.due_at := least(v_due.due_at, v_first);
    end loop;
  end loop;

  v_due.due_in := v_due.due_at - clock();
  return v_due;
end;
$$;

CREATE FUNCTION tenure.next_eligible_job_id(p_queues text[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  v_now    timestamptz := clock();
  v_queue  text;
  v_row    queue;
  v_floors bigint[];
  v_lane   integer;
  v_id     bigint;
begin
  perform check_count('the number of queues', cardinality(p_queues), 1000);

  foreach v_queue in array p_queues loop
    select q.* into v_row from queue as q where q.queue = v_queue;
    continue when v_row.paused_at is not null;

    v_floors := lane_floors(v_queue, v_row, null);
    v_lane := 0;
    loop
      v_lane := next_lane(v_queue, v_lane, v_floors);
      exit when v_lane is null;

      select j.id
        into v_id
        from job as j
       where j.status = 'queued'
         and j.queue = v_queue
         and j.priority = (v_lane - 1) / 2
         and j.solo = (v_lane % 2 = 0)
         and j.next_attempt_at >= instant(greatest(v_floors[4 + v_lane], 0))
         and j.next_attempt_at <= v_now
       order by j.next_attempt_at, j.id
       limit 1;
      if found then
        return v_id;
      end if;
    end loop;
  end loop;
  return null;
end;
$$;

CREATE FUNCTION tenure.next_lane(p_queue text, p_lane integer, p_floors bigint[]) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  v_met   integer := p_lane + 1;
  v_found integer;
begin
  while v_met <= 20 and p_floors[4 + v_met] < 0 loop
    v_met := v_met + 1;
  end loop;

  if p_lane / 2 < (v_met - 1) / 2 then
    select 2 * j.priority + j.solo::integer + 1
      into v_found
      from job as j
     where j.status = 'queued'
       and j.queue = p_queue
       and (j.priority, j.solo) >= ((p_lane / 2)::smallint, p_lane % 2 = 1)
       -- No row of two for the end: before PostgreSQL 18 a scan reads on beyond it, through the
       -- whole lane that was met.
       and j.priority < (v_met - 1) / 2
     order by j.priority, j.solo
     limit 1;
    if found then
      return v_found;
    end if;
  end if;

  -- The lane before a solo lane is of the same priority.
  if v_met % 2 = 0 and v_met > p_lane + 1 then
    perform
      from job as j
     where j.status = 'queued'
       and j.queue = p_queue
       and j.priority = (v_met - 1) / 2
       and j.solo = false
     limit 1;
    if found then
      return v_met - 1;
    end if;
  end if;

  return case when v_met <= 20 then v_met end;
end;
$$;

CREATE FUNCTION tenure.notify_sleepers(p_queue text) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
  if (select i.notify from install as i)
     and (somebody_sleeps(queue_key(p_queue)) or somebody_sleeps(0))
     and pg_notification_queue_usage() <= 0.5 then
    perform pg_notify(channel(), 'q' || queue_key(p_queue));
  end if;
end;
$$;

CREATE FUNCTION tenure.notify_waiters(p_job_ids bigint[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
declare
  v_key integer;
begin
  if cardinality(p_job_ids) = 0
     or not somebody_sleeps(-1)
     or not (select i.notify from install as i)
     or pg_notification_queue_usage() > 0.5 then
    return;
  end if;

  for v_key in select distinct wait_key(a.job_id) from unnest(p_job_ids) as a(job_id) loop
    if somebody_sleeps(v_key) then
      perform pg_notify(channel(), 'd' || a.job_id)
         from unnest(p_job_ids) as a(job_id)
        where wait_key(a.job_id) = v_key;
    end if;
  end loop;
end;
$$;

CREATE FUNCTION tenure.pause(p_queue text) RETURNS tenure.queue_answer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET lock_timeout TO '2s'
    AS $$
declare
  v_paused_at timestamptz;
begin
  perform check_name('queue', p_queue, 128);

  insert into queue as q (queue, paused_at)
  values (p_queue, clock())
      on conflict (queue) do update
     set paused_at = excluded.paused_at
   where q.paused_at is null
  returning q.paused_at into v_paused_at;
  if found then
    return row(p_queue, 'ok', v_paused_at, null)::queue_answer;
  end if;
  return row(p_queue, 'already',
             (select q.paused_at from queue as q where q.queue = p_queue), null)::queue_answer;
exception when lock_not_available then
  return row(p_queue, 'deferred', null, null)::queue_answer;
end;
$$;

CREATE FUNCTION tenure.poll_floor() RETURNS interval
    LANGUAGE sql IMMUTABLE
    AS $$
  select interval '30 seconds';
$$;

CREATE FUNCTION tenure.publish_floors(p_queue text, p_floors bigint[], p_now timestamp with time zone) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  v_pairs bigint[] := '{}';
begin
  for v_lane in 1 .. 20 loop
    if p_floors[4 + v_lane] >= 0 then
      v_pairs := v_pairs || array[v_lane, p_floors[4 + v_lane]];
    end if;
  end loop;

  with mine as materialized (
    select q.queue
      from queue as q
     where q.queue = p_queue
       and q.floor_generation = p_floors[1]
       for no key update skip locked
  )
  update queue as q
     set floors = v_pairs,
         floors_published_at = p_now
    from mine as m
   where q.queue = m.queue;
end;
$$;

CREATE FUNCTION tenure.queue_key(p_queue text) RETURNS integer
    LANGUAGE sql STABLE
    AS $$
  -- 0 is the key of all queues at once.
  select coalesce(nullif(pg_catalog.hashtext(p_queue), 0), 1);
$$;

CREATE FUNCTION tenure.reclaim(p_job_id bigint, p_worker_id text, p_token bigint, p_lease_expires_at timestamp with time zone, p_new_worker_id text, p_lease_for interval DEFAULT '00:00:30'::interval) RETURNS SETOF tenure.lease
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  v_now timestamptz;
begin
  perform check_isolation('reclaim');
  perform check_lease_args(p_job_id, p_worker_id, p_token);
  if p_lease_expires_at is null then
    perform refuse('lease_expires_at is null', 'Pass it as lapsed returned it.');
  end if;
  perform check_name('new_worker_id', p_new_worker_id, 256);
  perform check_span('lease_for', p_lease_for, '100 milliseconds', '24 hours');

  perform pg_current_xact_id();
  v_now := clock();

  return query
  with mine as materialized (
    select j.id, j.worker_id, j.token, j.claimed_at, j.attempt
      from job as j
     where j.id = p_job_id
       and j.token = p_token
       and j.worker_id = p_worker_id
       and j.lease_expires_at = p_lease_expires_at
       and j.lease_expires_at <= v_now
       for no key update skip locked
  ),
  noted as (
    insert into attempt
           (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome)
    select m.id, m.token, m.claimed_at, v_now, m.attempt, m.worker_id, 'reclaim', 'lost'
      from mine as m
  )
  update job as j
     set token = j.token + 1,
         worker_id = p_new_worker_id,
         claimed_at = v_now,
         reclaimed = true,
         lease_expires_at = date_trunc('milliseconds',
                                       least(v_now + p_lease_for, v_now + j.timeout))
    from mine as m
   where j.id = m.id
  returning j.id, j.token, j.worker_id, j.lease_expires_at, j.queue, j.kind, j.payload,
            j.priority, j.attempt, j.max_attempts, j.timeout, j.buffered, j.solo, j.progress,
            j.meta, j.created_at, j.last_error;
end;
$$;

CREATE FUNCTION tenure.refuse(p_message text, p_hint text) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
  raise exception using
    errcode = 'invalid_parameter_value',
    message = p_message,
    hint    = p_hint;
end;
$$;

CREATE FUNCTION tenure.release(p_job_id bigint, p_worker_id text, p_token bigint, p_started boolean, p_delay interval DEFAULT '00:00:00'::interval) RETURNS tenure.job_verdict
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
declare
  v_verdict job_verdict;
begin
  perform check_lease_args(p_job_id, p_worker_id, p_token);
  if p_started is null then
    perform refuse('started is null', 'Say whether the job was started: true or false.');
  end if;
  perform check_span('delay', p_delay, '0', '3653 days');

  select s.* into v_verdict
    from settle_jobs(p_worker_id, array[p_job_id], array[p_token], array['release'],
                     p_delays => array[p_delay], p_started => array[p_started]) as s;
  return v_verdict;
end;
$$;

CREATE FUNCTION tenure.renew(p_worker_id text, p_job_ids bigint[], p_tokens bigint[], p_lease_for interval DEFAULT '00:00:30'::interval) RETURNS SETOF tenure.renewal
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
declare
  v_now     timestamptz;
  v_renewed renewal[];
begin
  perform check_isolation('renew');
  perform check_leases(p_job_ids, p_tokens);
  perform check_span('lease_for', p_lease_for, '100 milliseconds', '24 hours');
  v_now := clock();

  with mine as materialized (
    select j.id
      from unnest(p_job_ids, p_tokens) as a(job_id, token)
      join job as j on j.id = a.job_id
     where j.token = a.token
       and j.worker_id = p_worker_id
     order by j.id
       for no key update of j skip locked
  ),
  renewed as (
    update job as j
       set lease_expires_at = date_trunc('milliseconds',
                                         least(v_now + p_lease_for, j.claimed_at + j.timeout))
      from mine as m
     where j.id = m.id
    returning j.id, j.token, j.lease_expires_at, j.cancel_requested
  )
  select coalesce(array_agg(row(r.id, r.token, 'renewed', r.lease_expires_at,
                                r.cancel_requested)::renewal), '{}')
    into v_renewed
    from renewed as r;

  return query select r.* from unnest(v_renewed) as r;
  if cardinality(v_renewed) = cardinality(p_job_ids) then
    return;
  end if;

  return query
  select a.job_id, a.token,
         case when j.id is null then 'lost' else 'deferred' end,
         j.lease_expires_at,
         coalesce(j.cancel_requested, false)
    from unnest(p_job_ids, p_tokens) as a(job_id, token)
    left join job as j
      on j.id = a.job_id
     and j.token = a.token
     and j.worker_id = p_worker_id
   where not exists (select from unnest(v_renewed) as r
                      where r.job_id = a.job_id and r.token = a.token);
end;
$$;

CREATE FUNCTION tenure.results(p_job_ids bigint[]) RETURNS SETOF tenure.job_result
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
begin
  perform check_count('the number of jobs', cardinality(p_job_ids), 1000);

  return query
  select r.id, r.token, r.status, r.result, e.error_type,
         case when r.status = 'failed' then coalesce(e.message, r.last_error) end
    from (
      select j.id, j.token, j.status, null::jsonb as result, null::text as last_error
        from job as j
       where j.id = any (p_job_ids)
      union all
      select h.id, h.token, h.status, case when h.status = 'completed' then h.result end,
             h.last_error
        from job_history as h
       where h.id = any (p_job_ids)
    ) as r
    left join lateral (
      select a.error_type, a.message
        from attempt as a
       where a.job_id = r.id
         and a.token = r.token
         and a.verb = 'fail'
         and r.status = 'failed'
    ) as e on true;
end;
$$;

CREATE FUNCTION tenure.resume(p_queue text) RETURNS tenure.queue_answer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET lock_timeout TO '2s'
    AS $$
begin
  perform check_name('queue', p_queue, 128);
  -- A sleeper that looked before this commits must not settle before it: see due_clock.
  perform due_clock();

  update queue as q
     set paused_at = null
   where q.queue = p_queue
     and q.paused_at is not null;
  if not found then
    return row(p_queue, 'already', null, null)::queue_answer;
  end if;
  perform notify_sleepers(p_queue);
  return row(p_queue, 'ok', null, null)::queue_answer;
exception when lock_not_available then
  return row(p_queue, 'deferred', null, null)::queue_answer;
end;
$$;

CREATE FUNCTION tenure.retry(p_job_id bigint, p_attempts integer DEFAULT 1) RETURNS tenure.job_answer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET lock_timeout TO '2s'
    AS $$
declare
  v_job   job;
  v_queue text;
  v_now   timestamptz;
begin
  perform check_count('attempts', p_attempts, 1000);

  v_job := locked_job(p_job_id);
  if v_job.status in ('queued', 'running', 'completed') then
    return row(p_job_id, 'refused', v_job.status, null)::job_answer;
  end if;

  v_now := due_clock();
  with back as (
    delete from job_history as h
     where h.id = p_job_id
    returning h.*
  )
  insert into job as j
         (id, token, token_limit, created_at, attempt, max_attempts, priority, retry_base,
          retry_cap, timeout, queue, kind, dedup_key, payload, meta, progress, last_error,
          next_attempt_at)
         overriding system value
  select b.id, b.token, b.token_limit + 10 * (b.attempt + p_attempts) + 100, b.created_at,
         b.attempt, b.attempt + p_attempts, b.priority, b.retry_base, b.retry_cap, b.timeout,
         b.queue, b.kind, b.dedup_key, b.payload, b.meta, b.progress, b.last_error, v_now
    from back as b
  returning j.queue into v_queue;
  if not found then
    -- Another retry moved it while this one waited.
    return row(p_job_id, 'refused', (select j.status from job as j where j.id = p_job_id),
               null)::job_answer;
  end if;

  perform notify_sleepers(v_queue);
  return row(p_job_id, 'ok', 'queued', null)::job_answer;
exception
  when unique_violation then
    return row(p_job_id, 'duplicate', v_job.status, null)::job_answer;
  when lock_not_available then
    return row(p_job_id, 'deferred', v_job.status, holder_pid(p_job_id))::job_answer;
end;
$$;

CREATE FUNCTION tenure.schema_version() RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
begin
  return (select v.version_num from alembic_version as v);
end;
$$;

CREATE FUNCTION tenure.seal(p_job_id bigint, p_worker_id text, p_token bigint, p_result jsonb DEFAULT NULL::jsonb) RETURNS tenure.job_verdict
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  v_verdict text;
begin
  perform check_lease_args(p_job_id, p_worker_id, p_token);
  perform check_json('result', p_result, 1048576);

  with mine as materialized (
    select j.id, j.cancel_requested, j.sealed_at
      from job as j
     where j.id = p_job_id
       and j.token = p_token
       and j.worker_id = p_worker_id
       for no key update skip locked
  ),
  sealed as (
    update job as j
       set sealed_at = clock(),
           result = p_result
      from mine as m
     where j.id = m.id
       and not m.cancel_requested
       and m.sealed_at is null
  )
  select case
           when m.cancel_requested then 'cancel_requested'
           when m.sealed_at is not null then 'already'
           else 'ok'
         end
    into v_verdict
    from mine as m;
  if not found then
    return stale_verdict(p_job_id, p_worker_id, p_token, 'seal');
  end if;
  return row(p_job_id, p_token, v_verdict, 'running', null)::job_verdict;
end;
$$;

CREATE FUNCTION tenure.seek_stragglers() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  v_start  timestamptz := clock();
  v_row    queue;
  v_lane   integer;
  v_behind boolean;
begin
  perform
     from install as i
    -- A pass that lies in the future was stamped before the clock was set back.
    where i.stragglers_sought_at > v_start
       or i.stragglers_sought_at
          < v_start - greatest(interval '1 minute', 20 * i.stragglers_cost)
      for no key update skip locked;
  if not found then
    return;
  end if;

  for v_row in select q.* from queue as q where cardinality(q.floors) > 0 loop
    v_behind := false;
    for v_pair in 1 .. cardinality(v_row.floors) / 2 loop
      v_lane := v_row.floors[2 * v_pair - 1];
      v_behind := v_behind or exists (
        select
          from job as j
         where j.status = 'queued'
           and j.queue = v_row.queue
           and j.priority = (v_lane - 1) / 2
           and j.solo = (v_lane % 2 = 0)
           and j.next_attempt_at < instant(v_row.floors[2 * v_pair]));
    end loop;

    if v_behind then
      with mine as materialized (
        select q.queue from queue as q where q.queue = v_row.queue for no key update skip locked
      )
      update queue as q
         set floors = '{}',
             floor_generation = q.floor_generation + 1
        from mine as m
       where q.queue = m.queue;
      perform notify_sleepers(v_row.queue);
    end if;
  end loop;

  update install as i
     set stragglers_sought_at = v_start,
         stragglers_cost = clock() - v_start;
end;
$$;

CREATE FUNCTION tenure.settle(p_worker_id text, p_job_ids bigint[], p_tokens bigint[], p_verbs text[], p_results jsonb[] DEFAULT NULL::jsonb[], p_errors jsonb[] DEFAULT NULL::jsonb[], p_delays interval[] DEFAULT NULL::interval[], p_started boolean[] DEFAULT NULL::boolean[]) RETURNS SETOF tenure.job_verdict
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
begin
  perform check_isolation('settle');
  perform check_leases(p_job_ids, p_tokens);
  perform check_outcomes(p_worker_id, p_job_ids, p_verbs, p_results, p_errors, p_delays, p_started);

  return query
  select s.*
    from settle_jobs(p_worker_id, p_job_ids, p_tokens, p_verbs, p_results, p_errors, p_delays,
                     array(select coalesce(s, true)
                             from unnest(p_job_ids, p_started) as a(job_id, s))) as s;
end;
$$;

CREATE FUNCTION tenure.settle_jobs(p_worker_id text, p_job_ids bigint[], p_tokens bigint[], p_verbs text[], p_results jsonb[] DEFAULT NULL::jsonb[], p_errors jsonb[] DEFAULT NULL::jsonb[], p_delays interval[] DEFAULT NULL::interval[], p_started boolean[] DEFAULT NULL::boolean[]) RETURNS SETOF tenure.job_verdict
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
declare
  v_now     timestamptz := due_clock();
  v_settled job_verdict[];
  v_queue   text;
begin
  with asked as (
    select a.*
      from unnest(p_job_ids, p_tokens, p_verbs, p_results, p_errors, p_delays, p_started)
           as a(job_id, token, verb, result, error, delay, started)
  ),
  mine as materialized (
    select j.id, j.token, j.token_limit, j.attempt, j.max_attempts, j.retry_base, j.retry_cap,
           j.cancel_requested, j.sealed_at is not null as sealed, j.buffered, j.reclaimed, j.solo,
           j.claimed_at, a.verb, a.delay,
           case when a.verb = 'complete' then a.result end as result,
           case when a.verb = 'fail' then a.error end as error,
           a.verb <> 'release' or a.started as reported,
           a.verb = 'release' and not a.started and (j.buffered or not j.reclaimed) as refund
      from asked as a
      join job as j on j.id = a.job_id
     where j.token = a.token
       and j.worker_id = p_worker_id
     order by j.id
       for update of j skip locked
  ),
  judged as (
    select m.*,
           case
             when m.verb = 'complete' then
               case when m.cancel_requested then 'cancel_requested' else 'ok' end
             when m.sealed then 'sealed'
             when m.verb = 'acknowledge_cancel' and not m.cancel_requested then 'not_requested'
             else 'ok'
           end as verdict
      from mine as m
  ),
  decided as materialized (
    select g.*,
           case
             when g.verdict <> 'ok' then 'running'
             when g.verb = 'complete' then 'completed'
             when g.cancel_requested then 'cancelled'
             when (g.error ->> 'cancel')::boolean then 'cancelled'
             when not (g.error ->> 'retryable')::boolean then 'failed'
             when g.verb = 'release' and g.token >= g.token_limit then 'failed'
             when g.refund or g.attempt < g.max_attempts then 'queued'
             else 'failed'
           end::job_status as status
      from judged as g
  ),
  ended as (
    delete from job as j
     using decided as d
     where j.id = d.id
       and d.status in ('completed', 'failed', 'cancelled')
    returning j.id, j.token, j.token_limit, j.created_at, j.claimed_at, j.attempt,
              j.max_attempts, d.status, j.priority, j.retry_base, j.retry_cap, j.timeout,
              j.queue, j.kind, j.worker_id, j.dedup_key, j.payload, j.meta, j.progress,
              case when d.sealed then j.result else d.result end as result,
              case
                when d.verb = 'fail' then error_line(d.error)
                when d.status = 'failed' and d.token >= d.token_limit
                  then format('given back %s times', d.token)
                when d.status = 'failed' then 'given back on the last attempt'
                else j.last_error
              end as last_error
  ),
  kept as (
    insert into job_history
           (id, token, token_limit, created_at, claimed_at, attempt, max_attempts, status,
            priority, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload,
            meta, progress, result, last_error, finished_at)
    select e.*, v_now
      from ended as e
  ),
  queued as (
    update job as j
       set status = 'queued',
           worker_id = null,
           claimed_at = null,
           lease_expires_at = null,
           buffered = false,
           reclaimed = false,
           -- A job whose handler reported did not kill its worker. One that was taken over from
           -- a batch may have.
           solo = not d.reported and (d.solo or (d.reclaimed and d.buffered)),
           attempt = d.attempt - d.refund::integer,
           next_attempt_at = v_now + coalesce(
             d.delay,
             case when d.verb = 'fail' then backoff(d.retry_base, d.retry_cap, d.attempt) end,
             '0'),
           last_error = case when d.verb = 'fail' then error_line(d.error) else j.last_error end
      from decided as d
     where j.id = d.id
       and d.status = 'queued'
    returning j.id, j.next_attempt_at
  ),
  noted as (
    insert into attempt
           (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome, error_type,
            message, traceback)
    select d.id, d.token, d.claimed_at, v_now, d.attempt, p_worker_id, d.verb,
           case when d.status = 'cancelled' then 'cancelled'
                when d.verb = 'fail' then 'failed'
                else 'released'
           end,
           cut_text(d.error ->> 'error_type', 256), cut_text(d.error ->> 'message', 8192),
           cut_text(d.error ->> 'traceback', 32768)
      from decided as d
     where d.verdict = 'ok'
       and d.verb <> 'complete'
  )
  select coalesce(array_agg(row(d.id, d.token, d.verdict, d.status,
                                q.next_attempt_at)::job_verdict), '{}')
    into v_settled
    from decided as d
    left join queued as q on q.id = d.id;

  perform notify_waiters(array(select s.job_id from unnest(v_settled) as s
                                where s.status in ('completed', 'failed', 'cancelled')));
  return query select s.* from unnest(v_settled) as s;

  if cardinality(v_settled) < cardinality(p_job_ids) then
    return query
    select s.*
      from unnest(p_job_ids, p_tokens, p_verbs) as a(job_id, token, verb),
           stale_verdict(a.job_id, p_worker_id, a.token, a.verb) as s
     where a.job_id <> all (array(select s.job_id from unnest(v_settled) as s));
  end if;

  if p_verbs && array['fail', 'release', 'acknowledge_cancel'] then
    perform trim_attempts(s.job_id) from unnest(v_settled) as s
      where s.token > 20 and s.verdict = 'ok' and s.status <> 'completed';
    for v_queue in
      select distinct j.queue
        from unnest(v_settled) as s
        join job as j on j.id = s.job_id
       where s.next_attempt_at < v_now + poll_floor()
    loop
      perform notify_sleepers(v_queue);
    end loop;
  end if;
end;
$$;

CREATE FUNCTION tenure.show_keys(p_keys integer[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
declare
  v_key integer;
begin
  if pg_current_xact_id_if_assigned() is not null then
    raise exception using
      errcode = 'TN003',
      message = 'to be notified needs a transaction of its own, and this one has written',
      hint    = 'Call it in autocommit, on the listening connection.';
  end if;

  perform sleep_end();
  foreach v_key in array p_keys loop
    -- The test of whoever looks holds the lock for an instant.
    for v_try in 1 .. 5 loop
      exit when pg_try_advisory_lock_shared(install_key(), v_key);
      if v_try = 5 then
        perform sleep_end();
        return null;
      end if;
      perform pg_sleep(0.001 * v_try);
    end loop;
  end loop;

  return pg_current_xact_id()::text::bigint;
end;
$$;

CREATE FUNCTION tenure.sleep_begin(p_queues text[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
begin
  perform check_count('the number of queues', cardinality(p_queues), 1000);
  return show_keys(sleep_keys(p_queues));
end;
$$;

CREATE FUNCTION tenure.sleep_end() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
declare
  v_key integer;
begin
  for v_key in
    select l.objid::bigint::bit(32)::integer
      from pg_locks as l
     where l.locktype = 'advisory'
       and l.pid = pg_backend_pid()
       and l.database = (select d.oid from pg_database as d where d.datname = current_database())
       and l.classid = 'job'::regclass::oid
       and l.objsubid = 2
       and l.mode = 'ShareLock'
  loop
    perform pg_advisory_unlock_shared(install_key(), v_key);
  end loop;
end;
$$;

CREATE FUNCTION tenure.sleep_keys(p_queues text[]) RETURNS integer[]
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
  select case
    when cardinality(p_queues) > 32 then array[0]
    else array(select distinct queue_key(a.queue) from unnest(p_queues) as a(queue))
  end;
$$;

CREATE FUNCTION tenure.sleep_settled(p_horizon bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
begin
  if p_horizon is null then
    perform refuse('horizon is null',
                   'Pass what sleep_begin or wait_begin returned; poll after null.');
  end if;
  return writers_ended(p_horizon, true);
end;
$$;

CREATE FUNCTION tenure.somebody_sleeps(p_key integer) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
declare
  v_install integer := install_key();
begin
  return case
    when pg_try_advisory_lock(v_install, p_key)
    then not pg_advisory_unlock(v_install, p_key)
    else true
  end;
end;
$$;

CREATE FUNCTION tenure.stale_verdict(p_job_id bigint, p_worker_id text, p_token bigint, p_verb text) RETURNS tenure.job_verdict
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  v_status    job_status;
  v_due       timestamptz;
  v_is_owners boolean;
  v_past      attempt;
  v_verdict   text := 'lost';
begin
  select r.status, r.next_attempt_at,
         coalesce(r.token = p_token and r.worker_id = p_worker_id, false)
    into v_status, v_due, v_is_owners
    from (
      select j.status, j.token, j.worker_id,
             case when j.status::text = 'queued' then j.next_attempt_at end as next_attempt_at
        from job as j where j.id = p_job_id
      union all
      select h.status, h.token, h.worker_id, null
        from job_history as h where h.id = p_job_id
    ) as r;

  select a.* into v_past
    from attempt as a
   where a.job_id = p_job_id
     and a.token = p_token
     and a.worker_id = p_worker_id;

  if v_status = 'running' and v_is_owners then
    v_verdict := 'deferred';
  elsif v_past.verb = p_verb
     or (v_past.outcome = 'healed' and p_verb in ('complete', 'seal'))
     or (v_status = 'completed' and v_is_owners and p_verb = 'complete') then
    v_verdict := 'already';
  end if;
  return row(p_job_id, p_token, v_verdict, v_status,
             case when v_verdict = 'already' then v_due end)::job_verdict;
end;
$$;

CREATE FUNCTION tenure.stored_dedup_key(p_key text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
  select case
    when octet_length(p_key) <= 512 then p_key
    else 'sha256:' || encode(sha256(convert_to(p_key, 'UTF8')), 'hex')
  end;
$$;

CREATE FUNCTION tenure.sweep(p_worker_id text, p_limit integer DEFAULT 100) RETURNS SETOF tenure.swept
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
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

CREATE FUNCTION tenure.sweep_jobs(p_worker_id text, p_job_id bigint, p_limit integer) RETURNS SETOF tenure.swept
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
declare
  v_now   timestamptz := due_clock();
  v_swept swept[];
  v_queue text;
begin
  with lapsed as materialized (
    select j.id, j.token, j.token_limit, j.worker_id, j.claimed_at, j.attempt, j.max_attempts,
           j.retry_base, j.retry_cap, j.cancel_requested, j.sealed_at is not null as sealed,
           j.buffered,
           coalesce(j.lease_expires_at
                      >= date_trunc('milliseconds', j.claimed_at + j.timeout), false) as timed_out
      from job as j
     where j.status = 'running'
       and j.lease_expires_at <= v_now
       and (p_job_id is null or j.id = p_job_id)
     order by j.claimed_at, j.id
     limit p_limit
       for update skip locked
  ),
  decided as materialized (
    select l.*,
           case
             when l.sealed then 'completed'
             when l.cancel_requested then 'cancelled'
             when l.buffered and l.token < l.token_limit then 'queued'
             when l.buffered or l.attempt >= l.max_attempts then 'failed'
             else 'queued'
           end::job_status as status,
           case
             when l.sealed then 'healed'
             when l.cancel_requested then 'cancelled'
             when l.timed_out and not l.buffered then 'timed out'
             else 'lost'
           end as outcome,
           case when l.timed_out then 'timed out' else 'lease lapsed' end as reason
      from lapsed as l
  ),
  ended as (
    delete from job as j
     using decided as d
     where j.id = d.id
       and d.status in ('completed', 'failed', 'cancelled')
    returning j.id, j.token + 1, j.token_limit, j.created_at, j.claimed_at, j.attempt,
              j.max_attempts, d.status, j.priority, j.retry_base, j.retry_cap, j.timeout,
              j.queue, j.kind, p_worker_id, j.dedup_key, j.payload, j.meta, j.progress,
              j.result,
              case
                when d.status <> 'failed' then j.last_error
                when d.buffered then format('given back %s times', d.token)
                else d.reason || ' on the last attempt'
              end
  ),
  kept as (
    insert into job_history
           (id, token, token_limit, created_at, claimed_at, attempt, max_attempts, status,
            priority, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload,
            meta, progress, result, last_error, finished_at)
    select e.*, v_now
      from ended as e
  ),
  queued as (
    update job as j
       set status = 'queued',
           token = j.token + 1,
           worker_id = null,
           claimed_at = null,
           lease_expires_at = null,
           buffered = false,
           reclaimed = false,
           solo = j.solo or d.buffered,
           attempt = d.attempt - d.buffered::integer,
           next_attempt_at = v_now + case when d.buffered then '0'
                                          else backoff(d.retry_base, d.retry_cap, d.attempt)
                                     end,
           last_error = case when d.buffered then j.last_error else d.reason end
      from decided as d
     where j.id = d.id
       and d.status = 'queued'
    returning j.id, j.next_attempt_at
  ),
  noted as (
    insert into attempt
           (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome)
    select d.id, d.token, d.claimed_at, v_now, d.attempt, d.worker_id, 'sweep', d.outcome
      from decided as d
  )
  select coalesce(array_agg(row(d.id, d.token, d.outcome, d.status, q.next_attempt_at)::swept
                            order by d.claimed_at, d.id), '{}')
    into v_swept
    from decided as d
    left join queued as q on q.id = d.id;

  perform notify_waiters(array(select s.job_id from unnest(v_swept) as s
                                where s.status in ('completed', 'failed', 'cancelled')));
  perform trim_attempts(s.job_id) from unnest(v_swept) as s where s.token > 20;
  for v_queue in
    select distinct j.queue
      from unnest(v_swept) as s
      join job as j on j.id = s.job_id
     where s.next_attempt_at < v_now + poll_floor()
  loop
    perform notify_sleepers(v_queue);
  end loop;

  return query select s.* from unnest(v_swept) as s;
end;
$$;

CREATE FUNCTION tenure.trim_attempts(p_job_id bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
begin
  delete from attempt as a
   where a.job_id = p_job_id
     and a.token <= (select b.token
                       from attempt as b
                      where b.job_id = p_job_id
                      order by b.token desc
                     offset 20
                      limit 1);
end;
$$;

CREATE FUNCTION tenure.try_wake(p_queues text[]) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
begin
  perform check_queues(p_queues);
  -- The key after those of wait_key.
  if not pg_try_advisory_xact_lock(install_key(), -34) then
    return false;
  end if;
  perform notify_sleepers(a.queue) from unnest(p_queues) as a(queue);
  return true;
end;
$$;

CREATE FUNCTION tenure.update_owned(p_job_id bigint, p_worker_id text, p_token bigint, p_progress jsonb DEFAULT NULL::jsonb, p_lease_for interval DEFAULT NULL::interval, p_require_cancel_not_requested boolean DEFAULT true) RETURNS tenure.job_verdict
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  v_now     timestamptz := clock();
  v_refused boolean;
begin
  perform check_lease_args(p_job_id, p_worker_id, p_token);
  perform check_json('progress', p_progress, 16384);
  if p_lease_for is not null then
    perform check_span('lease_for', p_lease_for, '100 milliseconds', '24 hours');
  end if;

  with mine as materialized (
    select j.id,
           j.cancel_requested and coalesce(p_require_cancel_not_requested, true) as refused
      from job as j
     where j.id = p_job_id
       and j.token = p_token
       and j.worker_id = p_worker_id
       for no key update skip locked
  ),
  updated as (
    update job as j
       set progress = coalesce(p_progress, j.progress),
           lease_expires_at = coalesce(
             date_trunc('milliseconds', least(v_now + p_lease_for,
                                              case when p_lease_for is not null
                                                   then j.claimed_at + j.timeout end)),
             j.lease_expires_at)
      from mine as m
     where j.id = m.id
       and not m.refused
  )
  select m.refused into v_refused from mine as m;
  if not found then
    return stale_verdict(p_job_id, p_worker_id, p_token, 'update_owned');
  end if;
  return row(p_job_id, p_token, case when v_refused then 'cancel_requested' else 'ok' end,
             'running', null)::job_verdict;
end;
$$;

CREATE FUNCTION tenure.wait_begin(p_job_ids bigint[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
begin
  perform check_count('the number of jobs', cardinality(p_job_ids), 1000);
  return show_keys(-1 || array(select distinct wait_key(a.job_id)
                                 from unnest(p_job_ids) as a(job_id)
                                where a.job_id is not null));
end;
$$;

CREATE FUNCTION tenure.wait_key(p_job_id bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
  select (-2 - p_job_id % 32)::integer;
$$;

CREATE FUNCTION tenure.wake(p_queues text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
declare
  v_queue text;
begin
  perform check_queues(p_queues);
  foreach v_queue in array p_queues loop
    perform notify_sleepers(v_queue);
  end loop;
end;
$$;

CREATE FUNCTION tenure.worker_seen(p_worker_id text, p_queues text[], p_info jsonb DEFAULT NULL::jsonb) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
declare
  v_now timestamptz := clock();
begin
  perform check_name('worker_id', p_worker_id, 256);
  perform check_queues(p_queues);
  perform check_json('info', p_info, 16384);

  insert into worker as w (worker_id, queues, info, first_seen_at, last_seen_at)
  values (p_worker_id, p_queues, p_info, v_now, v_now)
      on conflict (worker_id) do update
     set queues = excluded.queues,
         info = excluded.info,
         last_seen_at = excluded.last_seen_at;

  insert into queue (queue)
  select distinct a.queue
    from unnest(p_queues) as a(queue)
   where not exists (select from queue as q where q.queue = a.queue)
   order by a.queue
      on conflict do nothing;
end;
$$;

CREATE FUNCTION tenure.writers_ended(p_horizon bigint, p_look_closer boolean) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'tenure', 'pg_temp'
    AS $$
begin
  if pg_snapshot_xmin(pg_current_snapshot()) >= p_horizon::text::xid8 then
    return true;
  end if;
  if not p_look_closer then
    return false;
  end if;

  return not exists (
    select
      from pg_locks as writes
      join pg_locks as xact on xact.virtualtransaction = writes.virtualtransaction
     where writes.locktype = 'relation'
       and writes.database = (select d.oid from pg_database as d
                               where d.datname = current_database())
       and writes.relation = 'job'::regclass
       and writes.mode = 'RowExclusiveLock'
       and xact.locktype = 'transactionid'
       and xact.mode = 'ExclusiveLock'
       and age(xact.transactionid) > age((p_horizon & 4294967295)::text::xid)
  );
end;
$$;

CREATE TABLE tenure.alembic_version (
    version_num character varying(32) NOT NULL
);

CREATE TABLE tenure.attempt (
    job_id bigint NOT NULL,
    token bigint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    attempt integer NOT NULL,
    worker_id text NOT NULL,
    verb text NOT NULL,
    outcome text NOT NULL,
    error_type text,
    message text,
    traceback text,
    CONSTRAINT attempt_outcome_is_known CHECK ((outcome = ANY (ARRAY['failed'::text, 'released'::text, 'cancelled'::text, 'lost'::text, 'healed'::text, 'timed out'::text]))),
    CONSTRAINT attempt_verb_is_known CHECK ((verb = ANY (ARRAY['fail'::text, 'release'::text, 'acknowledge_cancel'::text, 'sweep'::text, 'reclaim'::text])))
);

COMMENT ON TABLE tenure.attempt IS 'How each lease ended that did not complete its job; token is that of the lease that ended.';

COMMENT ON COLUMN tenure.attempt.started_at IS 'When the lease was granted; a buffered one may never have started.';

CREATE VIEW tenure.attempts AS
 SELECT job_id,
    token,
    attempt,
    worker_id,
    verb,
    outcome,
    started_at,
    ended_at,
    error_type,
    message,
    traceback
   FROM tenure.attempt a;

CREATE TABLE tenure.job_history (
    id bigint NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    token bigint NOT NULL,
    token_limit bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    claimed_at timestamp with time zone,
    attempt integer NOT NULL,
    max_attempts integer NOT NULL,
    status tenure.job_status NOT NULL,
    priority smallint NOT NULL,
    retry_base interval,
    retry_cap interval,
    timeout interval,
    queue text NOT NULL,
    kind text NOT NULL,
    worker_id text,
    dedup_key text,
    payload jsonb,
    meta jsonb,
    progress jsonb,
    result jsonb,
    last_error text,
    CONSTRAINT job_history_has_ended CHECK ((status = ANY (ARRAY['completed'::tenure.job_status, 'failed'::tenure.job_status, 'cancelled'::tenure.job_status])))
)
PARTITION BY RANGE (finished_at);

COMMENT ON TABLE tenure.job_history IS 'Finished jobs by day of finished_at; maintain() makes partitions ahead and drops old ones.';

CREATE VIEW tenure.failed_jobs AS
 SELECT id AS job_id,
    queue,
    kind,
    attempt,
    max_attempts,
    created_at,
    finished_at,
    last_error,
    payload
   FROM tenure.job_history h
  WHERE (status = 'failed'::tenure.job_status);

CREATE TABLE tenure.install (
    only_row boolean DEFAULT true NOT NULL,
    notify boolean DEFAULT true NOT NULL,
    stragglers_sought_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    stragglers_cost interval DEFAULT '00:00:00'::interval NOT NULL,
    CONSTRAINT install_is_one_row CHECK (only_row)
);

COMMENT ON COLUMN tenure.install.notify IS 'False: nothing here sends NOTIFY, and workers poll. For two-phase commit, or a full queue.';

CREATE TABLE tenure.job_history_21000104 (
    id bigint CONSTRAINT job_history_id_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT job_history_finished_at_not_null NOT NULL,
    token bigint CONSTRAINT job_history_token_not_null NOT NULL,
    token_limit bigint CONSTRAINT job_history_token_limit_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT job_history_created_at_not_null NOT NULL,
    claimed_at timestamp with time zone,
    attempt integer CONSTRAINT job_history_attempt_not_null NOT NULL,
    max_attempts integer CONSTRAINT job_history_max_attempts_not_null NOT NULL,
    status tenure.job_status CONSTRAINT job_history_status_not_null NOT NULL,
    priority smallint CONSTRAINT job_history_priority_not_null NOT NULL,
    retry_base interval,
    retry_cap interval,
    timeout interval,
    queue text CONSTRAINT job_history_queue_not_null NOT NULL,
    kind text CONSTRAINT job_history_kind_not_null NOT NULL,
    worker_id text,
    dedup_key text,
    payload jsonb,
    meta jsonb,
    progress jsonb,
    result jsonb,
    last_error text,
    CONSTRAINT job_history_has_ended CHECK ((status = ANY (ARRAY['completed'::tenure.job_status, 'failed'::tenure.job_status, 'cancelled'::tenure.job_status])))
);

CREATE TABLE tenure.job_history_21000105 (
    id bigint CONSTRAINT job_history_id_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT job_history_finished_at_not_null NOT NULL,
    token bigint CONSTRAINT job_history_token_not_null NOT NULL,
    token_limit bigint CONSTRAINT job_history_token_limit_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT job_history_created_at_not_null NOT NULL,
    claimed_at timestamp with time zone,
    attempt integer CONSTRAINT job_history_attempt_not_null NOT NULL,
    max_attempts integer CONSTRAINT job_history_max_attempts_not_null NOT NULL,
    status tenure.job_status CONSTRAINT job_history_status_not_null NOT NULL,
    priority smallint CONSTRAINT job_history_priority_not_null NOT NULL,
    retry_base interval,
    retry_cap interval,
    timeout interval,
    queue text CONSTRAINT job_history_queue_not_null NOT NULL,
    kind text CONSTRAINT job_history_kind_not_null NOT NULL,
    worker_id text,
    dedup_key text,
    payload jsonb,
    meta jsonb,
    progress jsonb,
    result jsonb,
    last_error text,
    CONSTRAINT job_history_has_ended CHECK ((status = ANY (ARRAY['completed'::tenure.job_status, 'failed'::tenure.job_status, 'cancelled'::tenure.job_status])))
);

CREATE TABLE tenure.job_history_21000106 (
    id bigint CONSTRAINT job_history_id_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT job_history_finished_at_not_null NOT NULL,
    token bigint CONSTRAINT job_history_token_not_null NOT NULL,
    token_limit bigint CONSTRAINT job_history_token_limit_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT job_history_created_at_not_null NOT NULL,
    claimed_at timestamp with time zone,
    attempt integer CONSTRAINT job_history_attempt_not_null NOT NULL,
    max_attempts integer CONSTRAINT job_history_max_attempts_not_null NOT NULL,
    status tenure.job_status CONSTRAINT job_history_status_not_null NOT NULL,
    priority smallint CONSTRAINT job_history_priority_not_null NOT NULL,
    retry_base interval,
    retry_cap interval,
    timeout interval,
    queue text CONSTRAINT job_history_queue_not_null NOT NULL,
    kind text CONSTRAINT job_history_kind_not_null NOT NULL,
    worker_id text,
    dedup_key text,
    payload jsonb,
    meta jsonb,
    progress jsonb,
    result jsonb,
    last_error text,
    CONSTRAINT job_history_has_ended CHECK ((status = ANY (ARRAY['completed'::tenure.job_status, 'failed'::tenure.job_status, 'cancelled'::tenure.job_status])))
);

CREATE TABLE tenure.job_history_21000107 (
    id bigint CONSTRAINT job_history_id_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT job_history_finished_at_not_null NOT NULL,
    token bigint CONSTRAINT job_history_token_not_null NOT NULL,
    token_limit bigint CONSTRAINT job_history_token_limit_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT job_history_created_at_not_null NOT NULL,
    claimed_at timestamp with time zone,
    attempt integer CONSTRAINT job_history_attempt_not_null NOT NULL,
    max_attempts integer CONSTRAINT job_history_max_attempts_not_null NOT NULL,
    status tenure.job_status CONSTRAINT job_history_status_not_null NOT NULL,
    priority smallint CONSTRAINT job_history_priority_not_null NOT NULL,
    retry_base interval,
    retry_cap interval,
    timeout interval,
    queue text CONSTRAINT job_history_queue_not_null NOT NULL,
    kind text CONSTRAINT job_history_kind_not_null NOT NULL,
    worker_id text,
    dedup_key text,
    payload jsonb,
    meta jsonb,
    progress jsonb,
    result jsonb,
    last_error text,
    CONSTRAINT job_history_has_ended CHECK ((status = ANY (ARRAY['completed'::tenure.job_status, 'failed'::tenure.job_status, 'cancelled'::tenure.job_status])))
);

CREATE TABLE tenure.job_history_21000108 (
    id bigint CONSTRAINT job_history_id_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT job_history_finished_at_not_null NOT NULL,
    token bigint CONSTRAINT job_history_token_not_null NOT NULL,
    token_limit bigint CONSTRAINT job_history_token_limit_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT job_history_created_at_not_null NOT NULL,
    claimed_at timestamp with time zone,
    attempt integer CONSTRAINT job_history_attempt_not_null NOT NULL,
    max_attempts integer CONSTRAINT job_history_max_attempts_not_null NOT NULL,
    status tenure.job_status CONSTRAINT job_history_status_not_null NOT NULL,
    priority smallint CONSTRAINT job_history_priority_not_null NOT NULL,
    retry_base interval,
    retry_cap interval,
    timeout interval,
    queue text CONSTRAINT job_history_queue_not_null NOT NULL,
    kind text CONSTRAINT job_history_kind_not_null NOT NULL,
    worker_id text,
    dedup_key text,
    payload jsonb,
    meta jsonb,
    progress jsonb,
    result jsonb,
    last_error text,
    CONSTRAINT job_history_has_ended CHECK ((status = ANY (ARRAY['completed'::tenure.job_status, 'failed'::tenure.job_status, 'cancelled'::tenure.job_status])))
);

CREATE TABLE tenure.job_history_21000109 (
    id bigint CONSTRAINT job_history_id_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT job_history_finished_at_not_null NOT NULL,
    token bigint CONSTRAINT job_history_token_not_null NOT NULL,
    token_limit bigint CONSTRAINT job_history_token_limit_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT job_history_created_at_not_null NOT NULL,
    claimed_at timestamp with time zone,
    attempt integer CONSTRAINT job_history_attempt_not_null NOT NULL,
    max_attempts integer CONSTRAINT job_history_max_attempts_not_null NOT NULL,
    status tenure.job_status CONSTRAINT job_history_status_not_null NOT NULL,
    priority smallint CONSTRAINT job_history_priority_not_null NOT NULL,
    retry_base interval,
    retry_cap interval,
    timeout interval,
    queue text CONSTRAINT job_history_queue_not_null NOT NULL,
    kind text CONSTRAINT job_history_kind_not_null NOT NULL,
    worker_id text,
    dedup_key text,
    payload jsonb,
    meta jsonb,
    progress jsonb,
    result jsonb,
    last_error text,
    CONSTRAINT job_history_has_ended CHECK ((status = ANY (ARRAY['completed'::tenure.job_status, 'failed'::tenure.job_status, 'cancelled'::tenure.job_status])))
);

CREATE TABLE tenure.job_history_21000110 (
    id bigint CONSTRAINT job_history_id_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT job_history_finished_at_not_null NOT NULL,
    token bigint CONSTRAINT job_history_token_not_null NOT NULL,
    token_limit bigint CONSTRAINT job_history_token_limit_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT job_history_created_at_not_null NOT NULL,
    claimed_at timestamp with time zone,
    attempt integer CONSTRAINT job_history_attempt_not_null NOT NULL,
    max_attempts integer CONSTRAINT job_history_max_attempts_not_null NOT NULL,
    status tenure.job_status CONSTRAINT job_history_status_not_null NOT NULL,
    priority smallint CONSTRAINT job_history_priority_not_null NOT NULL,
    retry_base interval,
    retry_cap interval,
    timeout interval,
    queue text CONSTRAINT job_history_queue_not_null NOT NULL,
    kind text CONSTRAINT job_history_kind_not_null NOT NULL,
    worker_id text,
    dedup_key text,
    payload jsonb,
    meta jsonb,
    progress jsonb,
    result jsonb,
    last_error text,
    CONSTRAINT job_history_has_ended CHECK ((status = ANY (ARRAY['completed'::tenure.job_status, 'failed'::tenure.job_status, 'cancelled'::tenure.job_status])))
);

CREATE TABLE tenure.job_history_21000111 (
    id bigint CONSTRAINT job_history_id_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT job_history_finished_at_not_null NOT NULL,
    token bigint CONSTRAINT job_history_token_not_null NOT NULL,
    token_limit bigint CONSTRAINT job_history_token_limit_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT job_history_created_at_not_null NOT NULL,
    claimed_at timestamp with time zone,
    attempt integer CONSTRAINT job_history_attempt_not_null NOT NULL,
    max_attempts integer CONSTRAINT job_history_max_attempts_not_null NOT NULL,
    status tenure.job_status CONSTRAINT job_history_status_not_null NOT NULL,
    priority smallint CONSTRAINT job_history_priority_not_null NOT NULL,
    retry_base interval,
    retry_cap interval,
    timeout interval,
    queue text CONSTRAINT job_history_queue_not_null NOT NULL,
    kind text CONSTRAINT job_history_kind_not_null NOT NULL,
    worker_id text,
    dedup_key text,
    payload jsonb,
    meta jsonb,
    progress jsonb,
    result jsonb,
    last_error text,
    CONSTRAINT job_history_has_ended CHECK ((status = ANY (ARRAY['completed'::tenure.job_status, 'failed'::tenure.job_status, 'cancelled'::tenure.job_status])))
);

CREATE TABLE tenure.job_history_default (
    id bigint CONSTRAINT job_history_id_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT job_history_finished_at_not_null NOT NULL,
    token bigint CONSTRAINT job_history_token_not_null NOT NULL,
    token_limit bigint CONSTRAINT job_history_token_limit_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT job_history_created_at_not_null NOT NULL,
    claimed_at timestamp with time zone,
    attempt integer CONSTRAINT job_history_attempt_not_null NOT NULL,
    max_attempts integer CONSTRAINT job_history_max_attempts_not_null NOT NULL,
    status tenure.job_status CONSTRAINT job_history_status_not_null NOT NULL,
    priority smallint CONSTRAINT job_history_priority_not_null NOT NULL,
    retry_base interval,
    retry_cap interval,
    timeout interval,
    queue text CONSTRAINT job_history_queue_not_null NOT NULL,
    kind text CONSTRAINT job_history_kind_not_null NOT NULL,
    worker_id text,
    dedup_key text,
    payload jsonb,
    meta jsonb,
    progress jsonb,
    result jsonb,
    last_error text,
    CONSTRAINT job_history_has_ended CHECK ((status = ANY (ARRAY['completed'::tenure.job_status, 'failed'::tenure.job_status, 'cancelled'::tenure.job_status])))
);

ALTER TABLE tenure.job ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tenure.job_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW tenure.jobs AS
 SELECT j.id AS job_id,
    j.queue,
    j.kind,
    j.status,
        CASE
            WHEN (j.status <> 'queued'::tenure.job_status) THEN (j.status)::text
            WHEN (j.attempt > 0) THEN 'retrying'::text
            WHEN (j.next_attempt_at > tenure.clock()) THEN 'scheduled'::text
            ELSE 'queued'::text
        END AS shade,
    j.priority,
    j.attempt,
    j.max_attempts,
    j.token,
    j.worker_id,
        CASE
            WHEN (j.status = 'queued'::tenure.job_status) THEN j.next_attempt_at
            ELSE NULL::timestamp with time zone
        END AS next_attempt_at,
    j.lease_expires_at,
    j.claimed_at,
    j.created_at,
    NULL::timestamp with time zone AS finished_at,
    j.cancel_requested,
    j.sealed_at,
    j.buffered,
    j.solo,
    j.dedup_key,
    j.timeout,
    j.payload,
    j.result,
    j.progress,
    j.meta,
    j.last_error
   FROM tenure.job j
UNION ALL
 SELECT h.id AS job_id,
    h.queue,
    h.kind,
    h.status,
    (h.status)::text AS shade,
    h.priority,
    h.attempt,
    h.max_attempts,
    h.token,
    h.worker_id,
    NULL::timestamp with time zone AS next_attempt_at,
    NULL::timestamp with time zone AS lease_expires_at,
    h.claimed_at,
    h.created_at,
    h.finished_at,
    false AS cancel_requested,
    NULL::timestamp with time zone AS sealed_at,
    false AS buffered,
    false AS solo,
    h.dedup_key,
    h.timeout,
    h.payload,
    h.result,
    h.progress,
    h.meta,
    h.last_error
   FROM tenure.job_history h;

CREATE VIEW tenure.lapsed_jobs AS
 SELECT id AS job_id,
    queue,
    kind,
    worker_id,
    token,
    attempt,
    max_attempts,
    claimed_at,
    lease_expires_at,
    cancel_requested,
    sealed_at,
    buffered
   FROM tenure.job j
  WHERE ((status = 'running'::tenure.job_status) AND (lease_expires_at <= tenure.clock()));

CREATE VIEW tenure.queues AS
 SELECT COALESCE(q.queue, c.queue) AS queue,
    q.paused_at,
    COALESCE(c.queued, (0)::bigint) AS queued,
    COALESCE(c.scheduled, (0)::bigint) AS scheduled,
    COALESCE(c.retrying, (0)::bigint) AS retrying,
    COALESCE(c.running, (0)::bigint) AS running,
    c.oldest_due_at
   FROM (tenure.queue q
     FULL JOIN ( SELECT j.queue,
            count(*) FILTER (WHERE ((j.status = 'queued'::tenure.job_status) AND (j.attempt = 0) AND (j.next_attempt_at <= tenure.clock()))) AS queued,
            count(*) FILTER (WHERE ((j.status = 'queued'::tenure.job_status) AND (j.attempt = 0) AND (j.next_attempt_at > tenure.clock()))) AS scheduled,
            count(*) FILTER (WHERE ((j.status = 'queued'::tenure.job_status) AND (j.attempt > 0))) AS retrying,
            count(*) FILTER (WHERE (j.status = 'running'::tenure.job_status)) AS running,
            min(j.next_attempt_at) FILTER (WHERE ((j.status = 'queued'::tenure.job_status) AND (j.next_attempt_at <= tenure.clock()))) AS oldest_due_at
           FROM tenure.job j
          GROUP BY j.queue) c ON ((c.queue = q.queue)));

CREATE TABLE tenure.worker (
    worker_id text NOT NULL,
    queues text[] NOT NULL,
    info jsonb,
    first_seen_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL
);

CREATE VIEW tenure.workers AS
 SELECT worker_id,
    queues,
    info,
    first_seen_at,
    last_seen_at,
    ( SELECT count(*) AS count
           FROM tenure.job j
          WHERE ((j.status = 'running'::tenure.job_status) AND (j.worker_id = w.worker_id))) AS running
   FROM tenure.worker w;

ALTER TABLE ONLY tenure.job_history ATTACH PARTITION tenure.job_history_21000104 FOR VALUES FROM ('2100-01-04 00:00:00+00') TO ('2100-01-05 00:00:00+00');

ALTER TABLE ONLY tenure.job_history ATTACH PARTITION tenure.job_history_21000105 FOR VALUES FROM ('2100-01-05 00:00:00+00') TO ('2100-01-06 00:00:00+00');

ALTER TABLE ONLY tenure.job_history ATTACH PARTITION tenure.job_history_21000106 FOR VALUES FROM ('2100-01-06 00:00:00+00') TO ('2100-01-07 00:00:00+00');

ALTER TABLE ONLY tenure.job_history ATTACH PARTITION tenure.job_history_21000107 FOR VALUES FROM ('2100-01-07 00:00:00+00') TO ('2100-01-08 00:00:00+00');

ALTER TABLE ONLY tenure.job_history ATTACH PARTITION tenure.job_history_21000108 FOR VALUES FROM ('2100-01-08 00:00:00+00') TO ('2100-01-09 00:00:00+00');

ALTER TABLE ONLY tenure.job_history ATTACH PARTITION tenure.job_history_21000109 FOR VALUES FROM ('2100-01-09 00:00:00+00') TO ('2100-01-10 00:00:00+00');

ALTER TABLE ONLY tenure.job_history ATTACH PARTITION tenure.job_history_21000110 FOR VALUES FROM ('2100-01-10 00:00:00+00') TO ('2100-01-11 00:00:00+00');

ALTER TABLE ONLY tenure.job_history ATTACH PARTITION tenure.job_history_21000111 FOR VALUES FROM ('2100-01-11 00:00:00+00') TO ('2100-01-12 00:00:00+00');

ALTER TABLE ONLY tenure.job_history ATTACH PARTITION tenure.job_history_default DEFAULT;

INSERT INTO tenure.alembic_version (version_num) VALUES ('0001');

INSERT INTO tenure.attempt (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome, error_type, message, traceback) VALUES (2, 1, '2100-01-02 12:00:00+00', '2100-01-02 12:00:00+00', 1, 'ada', 'fail', 'failed', 'Broken', 'no address', 'line 1');
INSERT INTO tenure.attempt (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome, error_type, message, traceback) VALUES (5, 1, '2100-01-04 12:00:00+00', '2100-01-04 12:00:00+00', 1, 'ada', 'fail', 'failed', 'Broken', 'no address', 'line 1');
INSERT INTO tenure.attempt (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome, error_type, message, traceback) VALUES (7, 1, '2100-01-04 12:00:00+00', '2100-01-04 12:01:00+00', 1, 'bob', 'sweep', 'lost', NULL, NULL, NULL);
INSERT INTO tenure.attempt (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome, error_type, message, traceback) VALUES (8, 1, '2100-01-04 12:00:00+00', '2100-01-04 12:01:00+00', 1, 'bob', 'sweep', 'timed out', NULL, NULL, NULL);
INSERT INTO tenure.attempt (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome, error_type, message, traceback) VALUES (9, 1, '2100-01-04 12:00:00+00', '2100-01-04 12:01:00+00', 1, 'bob', 'sweep', 'lost', NULL, NULL, NULL);
INSERT INTO tenure.attempt (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome, error_type, message, traceback) VALUES (10, 1, '2100-01-04 12:00:00+00', '2100-01-04 12:01:00+00', 1, 'bob', 'sweep', 'lost', NULL, NULL, NULL);
INSERT INTO tenure.attempt (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome, error_type, message, traceback) VALUES (11, 1, '2100-01-04 12:00:00+00', '2100-01-04 12:01:00+00', 1, 'bob', 'sweep', 'lost', NULL, NULL, NULL);
INSERT INTO tenure.attempt (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome, error_type, message, traceback) VALUES (14, 1, '2100-01-04 12:01:00+00', '2100-01-04 12:02:00+00', 1, 'bob', 'reclaim', 'lost', NULL, NULL, NULL);
INSERT INTO tenure.attempt (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome, error_type, message, traceback) VALUES (32, 1, '2100-01-04 12:02:00+00', '2100-01-04 12:02:00+00', 1, 'ada', 'fail', 'failed', 'Broken', 'no address', 'line 1');
INSERT INTO tenure.attempt (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome, error_type, message, traceback) VALUES (33, 1, '2100-01-04 12:02:00+00', '2100-01-04 12:02:00+00', 1, 'ada', 'release', 'released', NULL, NULL, NULL);
INSERT INTO tenure.attempt (job_id, token, started_at, ended_at, attempt, worker_id, verb, outcome, error_type, message, traceback) VALUES (34, 1, '2100-01-04 12:02:00+00', '2100-01-04 12:02:00+00', 1, 'ada', 'fail', 'failed', 'Broken', '', NULL);

INSERT INTO tenure.install (only_row, notify, stragglers_sought_at, stragglers_cost) VALUES (true, true, '2100-01-04 12:01:00+00', '00:00:00');

INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (8, '2100-01-04 12:01:04.98146+00', 2, 150, '2100-01-04 12:00:00+00', NULL, NULL, NULL, 1, 5, 'queued', 5, false, false, false, false, NULL, NULL, '00:00:01', 'mail', 'timed out', NULL, NULL, '{"left": "timed out"}', NULL, NULL, NULL, 'timed out');
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (10, '2100-01-04 12:01:00+00', 2, 150, '2100-01-04 12:00:00+00', NULL, NULL, NULL, 0, 5, 'queued', 5, true, false, false, false, NULL, NULL, NULL, 'solo', 'solo', NULL, NULL, '{"left": "solo"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (11, '2100-01-04 12:01:00+00', 2, 150, '2100-01-04 12:00:00+00', NULL, NULL, NULL, 0, 5, 'queued', 5, true, false, false, false, NULL, NULL, NULL, 'solo', 'solo', NULL, NULL, '{"left": "solo"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (9, '2100-01-04 12:01:00+00', 3, 150, '2100-01-04 12:00:00+00', '2100-01-04 12:01:00+00', '2100-01-04 12:21:00+00', NULL, 1, 5, 'running', 5, true, false, false, false, NULL, NULL, NULL, 'solo', 'solo', 'ada', NULL, '{"left": "solo"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (12, '2100-01-04 12:01:00+00', 1, 150, '2100-01-04 12:01:00+00', '2100-01-04 12:01:00+00', '2100-01-04 12:01:01+00', NULL, 1, 5, 'running', 5, false, false, false, false, NULL, NULL, NULL, 'mail', 'lapsed', 'bob', NULL, '{"left": "lapsed"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (13, '2100-01-04 12:01:00+00', 1, 110, '2100-01-04 12:01:00+00', '2100-01-04 12:01:00+00', '2100-01-04 12:01:01+00', NULL, 1, 1, 'running', 5, false, false, false, false, NULL, NULL, NULL, 'mail', 'lapsed on the last attempt', 'bob', NULL, '{"left": "lapsed on the last attempt"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (15, '2100-01-04 12:01:00+00', 1, 150, '2100-01-04 12:01:00+00', '2100-01-04 12:01:00+00', '2100-01-04 12:01:01+00', '2100-01-04 12:01:00+00', 1, 5, 'running', 5, false, false, false, false, NULL, NULL, NULL, 'mail', 'sealed, lapsed', 'bob', NULL, '{"left": "sealed, lapsed"}', NULL, NULL, '"half done"', NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (16, '2100-01-04 12:01:00+00', 1, 150, '2100-01-04 12:01:00+00', '2100-01-04 12:01:00+00', '2100-01-04 12:01:01+00', NULL, 1, 5, 'running', 5, false, false, false, true, NULL, NULL, NULL, 'mail', 'cancel requested, lapsed', 'bob', NULL, '{"left": "cancel requested, lapsed"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (17, '2100-01-04 12:01:00+00', 1, 150, '2100-01-04 12:01:00+00', '2100-01-04 12:01:00+00', '2100-01-04 12:01:01+00', NULL, 1, 5, 'running', 5, false, true, false, false, NULL, NULL, NULL, 'buffered, lapsed', 'buffered, lapsed', 'bob', NULL, '{"left": "buffered, lapsed"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (18, '2100-01-04 12:01:00+00', 1, 150, '2100-01-04 12:01:00+00', '2100-01-04 12:01:00+00', '2100-01-04 12:01:01+00', NULL, 1, 5, 'running', 5, false, true, false, false, NULL, NULL, NULL, 'buffered, lapsed', 'buffered, lapsed', 'bob', NULL, '{"left": "buffered, lapsed"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (14, '2100-01-04 12:01:00+00', 2, 150, '2100-01-04 12:01:00+00', '2100-01-04 12:02:00+00', '2100-01-04 12:22:00+00', NULL, 1, 5, 'running', 5, false, false, true, false, NULL, NULL, NULL, 'mail', 'lapsed, taken over', 'ada', NULL, '{"left": "lapsed, taken over"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (19, '2100-01-04 12:02:00+00', 1, 150, '2100-01-04 12:02:00+00', '2100-01-04 12:02:00+00', '2100-01-04 12:22:00+00', NULL, 1, 5, 'running', 5, false, false, false, false, NULL, NULL, NULL, 'mail', 'running', 'ada', 'running', '{"left": "running"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (20, '2100-01-04 12:02:00+00', 1, 150, '2100-01-04 12:02:00+00', '2100-01-04 12:02:00+00', '2100-01-04 12:22:00+00', NULL, 1, 5, 'running', 5, false, false, false, false, NULL, NULL, NULL, 'mail', 'running, to fail', 'ada', 'running, to fail', '{"left": "running, to fail"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (21, '2100-01-04 12:02:00+00', 1, 150, '2100-01-04 12:02:00+00', '2100-01-04 12:02:00+00', '2100-01-04 12:22:00+00', NULL, 1, 5, 'running', 5, false, false, false, false, NULL, NULL, NULL, 'mail', 'running, to release', 'ada', 'running, to release', '{"left": "running, to release"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (22, '2100-01-04 12:02:00+00', 1, 150, '2100-01-04 12:02:00+00', '2100-01-04 12:02:00+00', '2100-01-04 12:22:00+00', NULL, 1, 5, 'running', 5, false, false, false, false, NULL, NULL, NULL, 'mail', 'running, to guard', 'ada', 'running, to guard', '{"left": "running, to guard"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (23, '2100-01-04 12:02:00+00', 1, 110, '2100-01-04 12:02:00+00', '2100-01-04 12:02:00+00', '2100-01-04 12:22:00+00', NULL, 1, 1, 'running', 5, false, false, false, false, NULL, NULL, NULL, 'mail', 'running on the last attempt', 'ada', NULL, '{"left": "running on the last attempt"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (24, '2100-01-04 12:02:00+00', 1, 150, '2100-01-04 12:02:00+00', '2100-01-04 12:02:00+00', '2100-01-04 12:22:00+00', NULL, 1, 5, 'running', 5, false, false, false, false, NULL, NULL, '01:00:00', 'mail', 'running under a timeout', 'ada', NULL, '{"left": "running under a timeout"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (25, '2100-01-04 12:02:00+00', 1, 150, '2100-01-04 12:02:00+00', '2100-01-04 12:02:00+00', '2100-01-04 12:22:00+00', NULL, 1, 5, 'running', 5, false, false, false, false, NULL, NULL, NULL, 'mail', 'running, with progress', 'ada', NULL, '{"left": "running, with progress"}', NULL, '{"done": 0.5}', NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (26, '2100-01-04 12:02:00+00', 1, 150, '2100-01-04 12:02:00+00', '2100-01-04 12:02:00+00', '2100-01-04 12:22:00+00', '2100-01-04 12:02:00+00', 1, 5, 'running', 5, false, false, false, false, NULL, NULL, NULL, 'mail', 'sealed', 'ada', NULL, '{"left": "sealed"}', NULL, NULL, '"half done"', NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (27, '2100-01-04 12:02:00+00', 1, 150, '2100-01-04 12:02:00+00', '2100-01-04 12:02:00+00', '2100-01-04 12:22:00+00', NULL, 1, 5, 'running', 5, false, false, false, true, NULL, NULL, NULL, 'mail', 'cancel requested', 'ada', NULL, '{"left": "cancel requested"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (28, '2100-01-04 12:02:00+00', 1, 150, '2100-01-04 12:02:00+00', '2100-01-04 12:02:00+00', '2100-01-04 12:22:00+00', NULL, 1, 5, 'running', 5, false, true, false, false, NULL, NULL, NULL, 'buffered', 'buffered', 'ada', NULL, '{"left": "buffered"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (29, '2100-01-04 12:02:00+00', 1, 150, '2100-01-04 12:02:00+00', '2100-01-04 12:02:00+00', '2100-01-04 12:22:00+00', NULL, 1, 5, 'running', 5, false, true, false, false, NULL, NULL, NULL, 'buffered', 'buffered', 'ada', NULL, '{"left": "buffered"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (30, '2100-01-04 12:02:00+00', 0, 150, '2100-01-04 12:02:00+00', NULL, NULL, NULL, 0, 5, 'queued', 0, false, false, false, false, NULL, NULL, NULL, 'mail', 'queued', NULL, 'waits', '{"left": "queued"}', '{"trace": 1}', NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (31, '2100-01-04 13:02:00+00', 0, 150, '2100-01-04 12:02:00+00', NULL, NULL, NULL, 0, 5, 'queued', 5, false, false, false, false, NULL, NULL, NULL, 'mail', 'delayed', NULL, NULL, '{"left": "delayed"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (32, '2100-01-04 12:02:05+00', 1, 150, '2100-01-04 12:02:00+00', NULL, NULL, NULL, 1, 5, 'queued', 5, false, false, false, false, NULL, NULL, NULL, 'mail', 'retrying', NULL, NULL, '{"left": "retrying"}', NULL, NULL, NULL, 'Broken: no address');
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (33, '2100-01-04 12:02:05+00', 1, 150, '2100-01-04 12:02:00+00', NULL, NULL, NULL, 1, 5, 'queued', 5, false, false, false, false, NULL, NULL, NULL, 'mail', 'released', NULL, NULL, '{"left": "released"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (34, '2100-01-04 12:02:00+00', 1, 230, '2100-01-04 12:02:00+00', NULL, NULL, NULL, 1, 2, 'queued', 5, false, false, false, false, NULL, NULL, NULL, 'mail', 'retried by an operator', NULL, NULL, '{"left": "retried by an operator"}', NULL, NULL, NULL, 'Broken');
INSERT INTO tenure.job (id, next_attempt_at, token, token_limit, created_at, claimed_at, lease_expires_at, sealed_at, attempt, max_attempts, status, priority, solo, buffered, reclaimed, cancel_requested, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) OVERRIDING SYSTEM VALUE VALUES (35, '2100-01-04 12:02:00+00', 0, 150, '2100-01-04 12:02:00+00', NULL, NULL, NULL, 0, 5, 'queued', 5, false, false, false, false, NULL, NULL, NULL, 'paused', 'paused', NULL, NULL, '{"left": "paused"}', NULL, NULL, NULL, NULL);

INSERT INTO tenure.job_history_21000104 (id, finished_at, token, token_limit, created_at, claimed_at, attempt, max_attempts, status, priority, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) VALUES (4, '2100-01-04 12:00:00+00', 1, 150, '2100-01-04 12:00:00+00', '2100-01-04 12:00:00+00', 1, 5, 'completed', 5, NULL, NULL, NULL, 'mail', 'completed', 'ada', 'done', '{"left": "completed"}', NULL, NULL, '"sent"', NULL);
INSERT INTO tenure.job_history_21000104 (id, finished_at, token, token_limit, created_at, claimed_at, attempt, max_attempts, status, priority, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) VALUES (5, '2100-01-04 12:00:00+00', 1, 150, '2100-01-04 12:00:00+00', '2100-01-04 12:00:00+00', 1, 5, 'failed', 5, NULL, NULL, NULL, 'mail', 'failed', 'ada', NULL, '{"left": "failed"}', NULL, NULL, NULL, 'Broken: no address');
INSERT INTO tenure.job_history_21000104 (id, finished_at, token, token_limit, created_at, claimed_at, attempt, max_attempts, status, priority, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) VALUES (6, '2100-01-04 12:00:00+00', 0, 150, '2100-01-04 12:00:00+00', NULL, 0, 5, 'cancelled', 5, NULL, NULL, NULL, 'mail', 'cancelled', NULL, NULL, '{"left": "cancelled"}', NULL, NULL, NULL, NULL);
INSERT INTO tenure.job_history_21000104 (id, finished_at, token, token_limit, created_at, claimed_at, attempt, max_attempts, status, priority, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) VALUES (7, '2100-01-04 12:01:00+00', 2, 110, '2100-01-04 12:00:00+00', '2100-01-04 12:00:00+00', 1, 1, 'failed', 5, NULL, NULL, NULL, 'mail', 'lapsed, swept', 'broom', NULL, '{"left": "lapsed, swept"}', NULL, NULL, NULL, 'lease lapsed on the last attempt');

INSERT INTO tenure.job_history_default (id, finished_at, token, token_limit, created_at, claimed_at, attempt, max_attempts, status, priority, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) VALUES (1, '2100-01-02 12:00:00+00', 1, 150, '2100-01-02 12:00:00+00', '2100-01-02 12:00:00+00', 1, 5, 'completed', 5, NULL, NULL, NULL, 'mail', 'completed', 'ada', 'done', '{"left": "completed"}', NULL, NULL, '"sent"', NULL);
INSERT INTO tenure.job_history_default (id, finished_at, token, token_limit, created_at, claimed_at, attempt, max_attempts, status, priority, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) VALUES (2, '2100-01-02 12:00:00+00', 1, 150, '2100-01-02 12:00:00+00', '2100-01-02 12:00:00+00', 1, 5, 'failed', 5, NULL, NULL, NULL, 'mail', 'failed', 'ada', NULL, '{"left": "failed"}', NULL, NULL, NULL, 'Broken: no address');
INSERT INTO tenure.job_history_default (id, finished_at, token, token_limit, created_at, claimed_at, attempt, max_attempts, status, priority, retry_base, retry_cap, timeout, queue, kind, worker_id, dedup_key, payload, meta, progress, result, last_error) VALUES (3, '2100-01-02 12:00:00+00', 0, 150, '2100-01-02 12:00:00+00', NULL, 0, 5, 'cancelled', 5, NULL, NULL, NULL, 'mail', 'cancelled', NULL, NULL, '{"left": "cancelled"}', NULL, NULL, NULL, NULL);

INSERT INTO tenure.queue (queue, paused_at, floors, floors_published_at, floor_generation) VALUES ('mail', NULL, '{}', '-infinity', 0);
INSERT INTO tenure.queue (queue, paused_at, floors, floors_published_at, floor_generation) VALUES ('paused', '2100-01-04 12:02:00+00', '{}', '-infinity', 0);

INSERT INTO tenure.worker (worker_id, queues, info, first_seen_at, last_seen_at) VALUES ('ada', '{mail}', '{"host": "here"}', '2100-01-04 12:00:00+00', '2100-01-04 12:00:00+00');

SELECT pg_catalog.setval('tenure.job_id_seq', 35, true);

ALTER TABLE ONLY tenure.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);

ALTER TABLE ONLY tenure.attempt
    ADD CONSTRAINT attempt_pkey PRIMARY KEY (job_id, token);

ALTER TABLE ONLY tenure.install
    ADD CONSTRAINT install_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY tenure.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tenure.queue
    ADD CONSTRAINT queue_pkey PRIMARY KEY (queue);

ALTER TABLE ONLY tenure.worker
    ADD CONSTRAINT worker_pkey PRIMARY KEY (worker_id);

CREATE UNIQUE INDEX job_dedup ON tenure.job USING btree (queue, dedup_key) WHERE (dedup_key IS NOT NULL);

CREATE INDEX job_history_id ON ONLY tenure.job_history USING btree (id);

CREATE INDEX job_history_21000104_id_idx ON tenure.job_history_21000104 USING btree (id);

CREATE INDEX job_history_21000105_id_idx ON tenure.job_history_21000105 USING btree (id);

CREATE INDEX job_history_21000106_id_idx ON tenure.job_history_21000106 USING btree (id);

CREATE INDEX job_history_21000107_id_idx ON tenure.job_history_21000107 USING btree (id);

CREATE INDEX job_history_21000108_id_idx ON tenure.job_history_21000108 USING btree (id);

CREATE INDEX job_history_21000109_id_idx ON tenure.job_history_21000109 USING btree (id);

CREATE INDEX job_history_21000110_id_idx ON tenure.job_history_21000110 USING btree (id);

CREATE INDEX job_history_21000111_id_idx ON tenure.job_history_21000111 USING btree (id);

CREATE INDEX job_history_default_id_idx ON tenure.job_history_default USING btree (id);

CREATE INDEX job_lane ON tenure.job USING btree (queue, priority, solo, next_attempt_at, id) WHERE (status = 'queued'::tenure.job_status);

CREATE INDEX job_running ON tenure.job USING btree (claimed_at, id) WHERE (status = 'running'::tenure.job_status);

ALTER INDEX tenure.job_history_id ATTACH PARTITION tenure.job_history_21000104_id_idx;

ALTER INDEX tenure.job_history_id ATTACH PARTITION tenure.job_history_21000105_id_idx;

ALTER INDEX tenure.job_history_id ATTACH PARTITION tenure.job_history_21000106_id_idx;

ALTER INDEX tenure.job_history_id ATTACH PARTITION tenure.job_history_21000107_id_idx;

ALTER INDEX tenure.job_history_id ATTACH PARTITION tenure.job_history_21000108_id_idx;

ALTER INDEX tenure.job_history_id ATTACH PARTITION tenure.job_history_21000109_id_idx;

ALTER INDEX tenure.job_history_id ATTACH PARTITION tenure.job_history_21000110_id_idx;

ALTER INDEX tenure.job_history_id ATTACH PARTITION tenure.job_history_21000111_id_idx;

ALTER INDEX tenure.job_history_id ATTACH PARTITION tenure.job_history_default_id_idx;

REVOKE ALL ON FUNCTION tenure.acknowledge_cancel(p_job_id bigint, p_worker_id text, p_token bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.add_partition(p_day date) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.backoff(p_base interval, p_cap interval, p_attempt integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.cancel(p_job_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.cancel_requested(p_job_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.channel() FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.check_count(p_what text, p_count bigint, p_most bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.check_isolation(p_verb text) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.check_json(p_what text, p_value jsonb, p_max_bytes integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.check_lease_args(p_job_id bigint, p_worker_id text, p_token bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.check_leases(p_job_ids bigint[], p_tokens bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.check_name(p_what text, p_name text, p_max_bytes integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.check_new_job(p_queue text, p_kind text, p_payload jsonb, p_priority integer, p_run_at timestamp with time zone, p_delay interval, p_max_attempts integer, p_dedup_key text, p_timeout interval, p_retry_base interval, p_retry_cap interval, p_meta jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.check_new_jobs(p_jobs jsonb, p_shared jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.check_outcomes(p_worker_id text, p_job_ids bigint[], p_verbs text[], p_results jsonb[], p_errors jsonb[], p_delays interval[], p_started boolean[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.check_queues(p_queues text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.check_span(p_what text, p_span interval, p_least interval, p_most interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.claim(p_queues text[], p_worker_id text, p_max_jobs integer, p_lease_for interval, p_solo boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.claim_job(p_job_id bigint, p_worker_id text, p_lease_for interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.clear_partition(p_name text, p_limit integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.clock() FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.complete(p_job_id bigint, p_worker_id text, p_token bigint, p_result jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.cut_text(p_text text, p_max_bytes integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.due_clock() FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.end_queued(p_job_id bigint, p_status tenure.job_status) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.enqueue(p_queue text, p_kind text, p_payload jsonb, p_priority integer, p_run_at timestamp with time zone, p_delay interval, p_max_attempts integer, p_dedup_key text, p_timeout interval, p_retry_base interval, p_retry_cap interval, p_meta jsonb, p_notify boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.enqueue_many(p_jobs jsonb, p_notify boolean, p_shared jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.error_line(p_error jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.fail(p_job_id bigint, p_worker_id text, p_token bigint, p_error_type text, p_message text, p_traceback text, p_retryable boolean, p_delay interval, p_cancel boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.floor_setting(p_queue text) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.grant_role(p_role name, p_what text) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.guard(p_job_id bigint, p_worker_id text, p_token bigint, p_require_cancel_not_requested boolean, p_lease_for interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.held(p_worker_id text) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.holder_pid(p_job_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.install_key() FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.instant(p_microseconds bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.json_fits(p_value jsonb, p_max_bytes integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.lane_floors(p_queue text, p_row tenure.queue, p_t timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.lapsed(p_limit integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.locked_job(p_job_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.maintain() FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.merged_floors(p_floors bigint[], p_published bigint[], p_now bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.microseconds(p_instant timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.next_due(p_queues text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.next_eligible_job_id(p_queues text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.next_lane(p_queue text, p_lane integer, p_floors bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.notify_sleepers(p_queue text) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.notify_waiters(p_job_ids bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.pause(p_queue text) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.poll_floor() FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.publish_floors(p_queue text, p_floors bigint[], p_now timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.queue_key(p_queue text) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.reclaim(p_job_id bigint, p_worker_id text, p_token bigint, p_lease_expires_at timestamp with time zone, p_new_worker_id text, p_lease_for interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.refuse(p_message text, p_hint text) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.release(p_job_id bigint, p_worker_id text, p_token bigint, p_started boolean, p_delay interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.renew(p_worker_id text, p_job_ids bigint[], p_tokens bigint[], p_lease_for interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.results(p_job_ids bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.resume(p_queue text) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.retry(p_job_id bigint, p_attempts integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.schema_version() FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.seal(p_job_id bigint, p_worker_id text, p_token bigint, p_result jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.seek_stragglers() FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.settle(p_worker_id text, p_job_ids bigint[], p_tokens bigint[], p_verbs text[], p_results jsonb[], p_errors jsonb[], p_delays interval[], p_started boolean[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.settle_jobs(p_worker_id text, p_job_ids bigint[], p_tokens bigint[], p_verbs text[], p_results jsonb[], p_errors jsonb[], p_delays interval[], p_started boolean[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.show_keys(p_keys integer[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.sleep_begin(p_queues text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.sleep_end() FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.sleep_keys(p_queues text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.sleep_settled(p_horizon bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.somebody_sleeps(p_key integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.stale_verdict(p_job_id bigint, p_worker_id text, p_token bigint, p_verb text) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.stored_dedup_key(p_key text) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.sweep(p_worker_id text, p_limit integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.sweep_jobs(p_worker_id text, p_job_id bigint, p_limit integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.trim_attempts(p_job_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.try_wake(p_queues text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.update_owned(p_job_id bigint, p_worker_id text, p_token bigint, p_progress jsonb, p_lease_for interval, p_require_cancel_not_requested boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.wait_begin(p_job_ids bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.wait_key(p_job_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.wake(p_queues text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.worker_seen(p_worker_id text, p_queues text[], p_info jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenure.writers_ended(p_horizon bigint, p_look_closer boolean) FROM PUBLIC;

