-- schema_version() -> text
--
-- The revision of this install; a client compares it with the one it was written for.
create or replace function schema_version()
  returns text
  language plpgsql
  stable
  security definer
  set search_path from current
as $$
begin
  return (select v.version_num from alembic_version as v);
end;
$$;
