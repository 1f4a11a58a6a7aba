-- check_leases(job_ids, tokens) -> void (internal)
--
-- Raises: 22023 unless the arrays name 1 to 1,000 leases.
create or replace function check_leases(
  p_job_ids bigint[],
  p_tokens  bigint[]
)
  returns void
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
begin
  perform check_count('the number of leases', cardinality(p_job_ids), 1000);
  if cardinality(p_tokens) is distinct from cardinality(p_job_ids) then
    perform refuse(
      format('%s job_ids and %s tokens are given', cardinality(p_job_ids),
             coalesce(cardinality(p_tokens)::text, 'no')),
      'Pass one token for each job.');
  end if;
  if array_ndims(p_job_ids) > 1 or array_ndims(p_tokens) > 1 then
    perform refuse('job_ids or tokens is an array of arrays', 'Pass an array of numbers.');
  end if;
  if array_position(p_job_ids, null) is not null or array_position(p_tokens, null) is not null then
    perform refuse('a job_id or token is null', 'Pass them as claim returned them.');
  end if;
end;
$$;
