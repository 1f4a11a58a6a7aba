-- add_partition(day) -> text (internal)
--
-- Makes the history partition of one day (UTC) and attaches it: CREATE TABLE … LIKE with the
-- matching CHECK first, so that ATTACH need not scan it under its lock. Returns its name, or
-- null when it exists or too many rows of the day are in the default partition.
--
-- Locks: the default partition against readers; for a day whose jobs may be ending just now also
--        job_history against writers.
create or replace function add_partition(
  p_day date
)
  returns text
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
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
$$;
