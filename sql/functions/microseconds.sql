-- microseconds(instant) -> bigint (internal)
--
-- An instant as microseconds since 1970, the form in which floors are kept: settings hold
-- integers only.
create or replace function microseconds(
  p_instant timestamptz
)
  returns bigint
  language sql
  stable
  security invoker
as $$
  select (extract(epoch from p_instant) * 1000000)::bigint;
$$;
