-- merged_floors(floors, published, now) -> bigint[] (internal)
--
-- A session's lane floors with those that another session published, where they are higher or
-- the lane was not met; published ones that lie in the future are left out.
create or replace function merged_floors(
  p_floors    bigint[],
  p_published bigint[],
  p_now       bigint
)
  returns bigint[]
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
begin
  for v_pair in 1 .. coalesce(cardinality(p_published), 0) / 2 loop
    if p_published[2 * v_pair - 1] between 1 and 20 and p_published[2 * v_pair] <= p_now then
      p_floors[4 + p_published[2 * v_pair - 1]] :=
        greatest(p_floors[4 + p_published[2 * v_pair - 1]], p_published[2 * v_pair]);
    end if;
  end loop;
  return p_floors;
end;
$$;
