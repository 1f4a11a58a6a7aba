-- check_span(what, span, least, most) -> void (internal)
--
-- A span with a negative part compares as if a month had 30 days and a day 24 hours, and may
-- lead into the past when it is added to a time.
--
-- Raises: 22023 unless least <= span <= most and no part is negative; null fails too.
create or replace function check_span(
  p_what  text,
  p_span  interval,
  p_least interval,
  p_most  interval
)
  returns void
  language plpgsql
  volatile
  security invoker
as $$
begin
  if coalesce(p_span between p_least and p_most
              and least(extract(year from p_span), extract(month from p_span),
                        extract(day from p_span), extract(hour from p_span),
                        extract(minute from p_span), extract(second from p_span)) >= 0,
              false) then
    return;
  end if;

  perform refuse(
    format('%s is %s', p_what, coalesce(p_span::text, 'null')),
    format('Use a duration from %s to %s, no part of it negative.', p_least, p_most));
end;
$$;
