-- install_key() -> integer (internal)
--
-- The first half of every advisory lock of this install: the oid of its job table.
create or replace function install_key()
  returns integer
  language sql
  stable
  security definer
  set search_path from current
as $$
  -- An oid has 32 bits and no sign.
  select ('job'::regclass::oid::bigint::bit(32))::integer;
$$;
