-- Chooses the schema for whatever is created next in this transaction.
--
-- Wants the name in the setting tenure.schema, for this transaction only. Creates the schema
-- when it is missing and makes it the search_path, which `set search_path from current` then
-- fixes in every function. The lock lets only one installation or migration run at a time.
set local client_min_messages = warning;

do $$
declare
  v_schema text := current_setting('tenure.schema');
begin
  if octet_length(v_schema) not between 1 and 63 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('a schema name has 1 to 63 bytes, not %s', octet_length(v_schema));
  end if;

  perform set_config('lock_timeout', '0', true);
  perform pg_advisory_xact_lock(x'74656e757265'::bigint);  -- 'tenure'
  set local lock_timeout to default;

  -- Not `if not exists`, which asks for the right to create schemas even when it need not.
  if not exists (select from pg_namespace as n where n.nspname = v_schema) then
    execute format('create schema %I', v_schema);
  end if;

  perform set_config('search_path', format('%I, pg_temp', v_schema), true);
end;
$$;
