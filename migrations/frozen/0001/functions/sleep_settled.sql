-- sleep_settled(horizon) -> boolean
--
-- Whether every writer that may have looked for sleepers before sleep_begin returned this
-- horizon has ended, or for waiters before wait_begin did. Not while a transaction that wrote
-- jobs stays open; an old transaction that did not is no hindrance. Look once more after true.
--
-- Locks:  none. Reads pg_locks when a snapshot does not tell: ask with a growing pause.
-- Raises: 22023 for a null horizon.
create or replace function sleep_settled(
  p_horizon bigint
)
  returns boolean
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
begin
  if p_horizon is null then
    perform refuse('horizon is null',
                   'Pass what sleep_begin or wait_begin returned; poll after null.');
  end if;
  return writers_ended(p_horizon, true);
end;
$$;
