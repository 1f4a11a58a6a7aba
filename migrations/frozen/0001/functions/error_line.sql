-- error_line(error) -> text (internal)
--
-- An error object of settle as one line, `Type: message`, cut to 8 KiB: what the next attempt is
-- shown as last_error.
create or replace function error_line(
  p_error jsonb
)
  returns text
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
begin
  return cut_text(
    concat_ws(': ', nullif(p_error ->> 'error_type', ''), nullif(p_error ->> 'message', '')),
    8192);
end;
$$;
