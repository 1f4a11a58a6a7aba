-- clear_partition(name, limit) -> integer (internal)
--
-- Deletes up to limit attempts of the jobs in one history partition; how many there were. Fewer
-- than limit is proof that it can be dropped.
create or replace function clear_partition(
  p_name  text,
  p_limit integer
)
  returns integer
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
declare
  v_deleted integer;
begin
  execute format(
    'delete from attempt
      where ctid = any (array(
              select a.ctid from %I as h join attempt as a on a.job_id = h.id limit $1))',
    p_name)
    using p_limit;
  get diagnostics v_deleted = row_count;
  return v_deleted;
end;
$$;
