-- clock() -> timestamptz
--
-- The one place where tenure asks for the time. Wall-clock time, not the transaction's: a lease
-- granted late in a long transaction must not be born lapsed. The tests replace this function
-- in their template database; nothing that a session can set moves it.
create or replace function clock()
  returns timestamptz
  language sql
  volatile
  security invoker
as $$
  select pg_catalog.clock_timestamp();
$$;
