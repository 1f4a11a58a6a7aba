-- Closed to everybody but the owner; grant_role() opens what a role needs. Loaded last, also by
-- every migration that makes a function anew, for a dropped function takes its grants along.

do $$
declare
  v_function text;
begin
  for v_function in
    select p.oid::regprocedure::text
      from pg_proc as p
     where p.pronamespace = quote_ident(current_schema())::regnamespace
  loop
    execute format('revoke all on function %s from public', v_function);
  end loop;
end;
$$;
