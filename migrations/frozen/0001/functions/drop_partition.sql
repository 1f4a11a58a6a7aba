-- drop_partition(name) -> boolean (internal)
--
-- Drops one history partition once the attempts of its jobs are gone; deletes up to 10,000 of
-- those otherwise, and returns false.
create or replace function drop_partition(
  p_name text
)
  returns boolean
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
declare
  v_deleted bigint;
begin
  execute format(
    'delete from attempt
      where ctid = any (array(
              select a.ctid from %I as h join attempt as a on a.job_id = h.id limit 10000))',
    p_name);
  get diagnostics v_deleted = row_count;
  if v_deleted = 10000 then
    return false;
  end if;

  execute format('drop table %I', p_name);
  return true;
end;
$$;
