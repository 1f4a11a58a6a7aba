-- stored_dedup_key(key) -> text (internal)
--
-- A dedup key as it is stored: as given up to 512 bytes, its SHA-256 beyond, so that the unique
-- index can hold it.
create or replace function stored_dedup_key(
  p_key text
)
  returns text
  language sql
  immutable
  security invoker
as $$
  select case
    when octet_length(p_key) <= 512 then p_key
    else 'sha256:' || encode(sha256(convert_to(p_key, 'UTF8')), 'hex')
  end;
$$;
