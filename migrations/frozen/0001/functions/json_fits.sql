-- json_fits(value, max_bytes) -> boolean (internal)
--
-- Whether check_json would let a value pass; part of the statement that asks it.
create or replace function json_fits(
  p_value     jsonb,
  p_max_bytes integer
)
  returns boolean
  language sql
  stable
  security invoker
as $$
  -- Sixty-five levels take eight bytes each at the least.
  select octet_length(p_value::text) <= p_max_bytes
     and (pg_column_size(p_value) < 520 or not jsonb_path_exists(p_value, 'strict $.**{65}'));
$$;
