-- check_isolation(verb) -> void (internal)
--
-- Refuses the verbs that choose among rows under a snapshot that may be old: they would answer
-- about a past in which other workers had not yet acted.
--
-- Raises: TN006 unless the transaction is READ COMMITTED.
create or replace function check_isolation(
  p_verb text
)
  returns void
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception using
      errcode = 'TN006',
      message = format('%s needs READ COMMITTED, and this transaction is %s', p_verb,
                       upper(current_setting('transaction_isolation'))),
      hint    = 'Call it in a transaction of its own, in READ COMMITTED.';
  end if;
end;
$$;
