-- clear_partition(name) -> boolean (internal)
--
-- Deletes up to 10,000 attempts of the jobs in one history partition; true when none are left,
-- so that it can be dropped.
create or replace function clear_partition(
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
  return v_deleted < 10000;
end;
$$;
