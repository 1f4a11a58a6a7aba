-- poll_floor() -> interval
--
-- The longest that a sleeper may go without looking, and so the due times that are worth
-- waking somebody for: a constant of the contract, for both sides must agree on it.
create or replace function poll_floor()
  returns interval
  language sql
  immutable
  security invoker
as $$
  select interval '30 seconds';
$$;
