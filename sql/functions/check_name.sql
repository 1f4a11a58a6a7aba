-- check_name(what, name, max_bytes) -> void (internal)
--
-- A name is 1 to max_bytes bytes of UTF-8 without control characters or blank edges, so that
-- what a person sees in a listing is what a program has to send.
--
-- Raises: 22023 when the name is none.
create or replace function check_name(
  p_what      text,
  p_name      text,
  p_max_bytes integer
)
  returns void
  language plpgsql
  volatile
  security invoker
as $$
begin
  if coalesce(octet_length(p_name) between 1 and p_max_bytes
              and p_name !~ '[\u0001-\u001f\u007f-\u009f]'
              and p_name !~ '^[ \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]'
              and p_name !~ '[ \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]$',
              false) then
    return;
  end if;

  perform refuse(
    case
      when p_name is null then format('%s is null', p_what)
      when octet_length(p_name) > p_max_bytes
      then format('%s is %s bytes long', p_what, octet_length(p_name))
      else format('%s %L is not a name', p_what, p_name)
    end,
    format('Use 1 to %s bytes without control characters or blank edges.', p_max_bytes));
end;
$$;
