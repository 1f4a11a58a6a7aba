-- check_json(what, value, max_bytes) -> void (internal)
--
-- Bounds a JSON value: its text in bytes, and 64 levels of arrays and objects, so that every
-- client can read back what any client stored. Null passes.
--
-- Raises: 22023 when the value is too large or too deep.
create or replace function check_json(
  p_what      text,
  p_value     jsonb,
  p_max_bytes integer
)
  returns void
  language plpgsql
  volatile
  strict
  security invoker
as $$
declare
  v_bytes integer := octet_length(p_value::text);
begin
  if v_bytes > p_max_bytes then
    perform refuse(
      format('%s is %s bytes long', p_what, v_bytes),
      format('Use at most %s bytes of JSON, and keep larger data elsewhere.', p_max_bytes));
  end if;

  -- Sixty-five levels need at least as many pairs of brackets.
  if v_bytes >= 130 and jsonb_path_exists(p_value, 'strict $.**{65}') then
    perform refuse(
      format('%s is nested too deeply', p_what),
      'Use at most 64 levels of arrays and objects.');
  end if;
end;
$$;
