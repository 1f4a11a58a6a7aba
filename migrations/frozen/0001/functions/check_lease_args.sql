-- check_lease_args(job_id, worker_id, token) -> void (internal)
--
-- Raises: 22023 when one of the three that name a lease is null.
create or replace function check_lease_args(
  p_job_id    bigint,
  p_worker_id text,
  p_token     bigint
)
  returns void
  language plpgsql
  volatile
  security definer
  set search_path from current
as $$
begin
  if p_job_id is null or p_worker_id is null or p_token is null then
    perform refuse(
      'a lease is named by job_id, worker_id and token, and one of them is null',
      'Pass all three as claim returned them.');
  end if;
end;
$$;
