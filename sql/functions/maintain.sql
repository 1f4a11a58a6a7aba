-- maintain() -> setof text
--
-- Makes the history partitions of the coming week and drops whole ones past the keep time of 30
-- days, with the attempts of their jobs. Forgets workers not seen for a day. Call it hourly or
-- so; of several at once one does it all.
--
-- A call deletes 10,000 attempts at most, so that it ends in time under a statement_timeout; what
-- it leaves it says, and the next call goes on from there.
--
-- A partition is attached or dropped under a lock_timeout of 50 ms and left for the next call
-- when that is not enough: waiting for readers would block every completion behind it. A day
-- whose rows went to the default partition for want of one is moved when it has at most 10,000
-- of them, and stays there otherwise.
--
-- Locks:   the install row, against other calls; job_history and its default partition, for an
--          instant.
-- Returns: what was done, a line each.
create or replace function maintain()
  returns setof text
  language plpgsql
  volatile
  security definer
  set search_path from current
  set lock_timeout = '50ms'
as $$
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
$$;
