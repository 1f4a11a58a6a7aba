-- cut_text(text, max_bytes) -> text (internal)
--
-- The text, or as many whole characters of it as fit with a marker into max_bytes; null for null.
create or replace function cut_text(
  p_text      text,
  p_max_bytes integer
)
  returns text
  language plpgsql
  volatile
  strict
  security definer
  set search_path from current
as $$
declare
  v_bytes bytea;
  v_keep  integer := p_max_bytes - octet_length('…');
begin
  if octet_length(p_text) <= p_max_bytes then
    return p_text;
  end if;

  v_bytes := convert_to(left(p_text, p_max_bytes), 'UTF8');
  -- A byte 10xxxxxx continues a character: cut before the first byte of one.
  while get_byte(v_bytes, v_keep) & 192 = 128 loop
    v_keep := v_keep - 1;
  end loop;
  return convert_from(substring(v_bytes from 1 for v_keep), 'UTF8') || '…';
end;
$$;
