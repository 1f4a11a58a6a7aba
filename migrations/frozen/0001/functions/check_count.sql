-- check_count(what, count, most) -> void (internal)
--
-- Raises: 22023 unless 1 <= count <= most; null fails too, for a null limit means no limit.
create or replace function check_count(
  p_what  text,
  p_count bigint,
  p_most  bigint
)
  returns void
  language plpgsql
  volatile
  security invoker
as $$
begin
  if coalesce(p_count between 1 and p_most, false) then
    return;
  end if;

  perform refuse(
    format('%s is %s', p_what, coalesce(p_count::text, 'null')),
    format('Use a number from 1 to %s.', p_most));
end;
$$;
