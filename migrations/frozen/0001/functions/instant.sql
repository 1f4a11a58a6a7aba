-- instant(microseconds) -> timestamptz (internal)
--
-- The inverse of microseconds().
create or replace function instant(
  p_microseconds bigint
)
  returns timestamptz
  language sql
  stable
  security invoker
as $$
  select timestamptz '1970-01-01 00:00:00+00' + p_microseconds * interval '1 microsecond';
$$;
