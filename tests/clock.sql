-- Replaces clock() in the template database, so that time obeys the test:
--
--   update test_clock set at = '2026-01-01 00:00:00+00';   time stands there
--   update test_clock set at = null;                       time passes again
create table test_clock (
  at timestamptz
);

insert into test_clock (at) values (null);

create or replace function clock()
  returns timestamptz
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
begin
  return coalesce((select c.at from test_clock as c), pg_catalog.clock_timestamp());
end;
$$;
