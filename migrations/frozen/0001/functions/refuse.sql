-- refuse(message, hint) -> void (internal)
--
-- Refuses an argument that can never be right, before anything is written.
--
-- Raises: 22023, always.
create or replace function refuse(
  p_message text,
  p_hint    text
)
  returns void
  language plpgsql
  volatile
  security invoker
as $$
begin
  raise exception using
    errcode = 'invalid_parameter_value',
    message = p_message,
    hint    = p_hint;
end;
$$;
