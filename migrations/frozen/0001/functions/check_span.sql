-- check_span(what, span, least, most) -> void (internal)
--
-- Raises: 22023 unless least <= span <= most; null fails too.
create or replace function check_span(
  p_what  text,
  p_span  interval,
  p_least interval,
  p_most  interval
)
  returns void
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
begin
  if coalesce(p_span between p_least and p_most, false) then
    return;
  end if;

  perform refuse(
    format('%s is %s', p_what, coalesce(p_span::text, 'null')),
    format('Use a duration from %s to %s.', p_least, p_most));
end;
$$;
