-- Installs tenure with psql alone, in one transaction:
--
--   psql -f sql/install.sql                         in the schema tenure
--   psql -v schema="My-Queue" -f sql/install.sql    in another one, made when it is missing
--
-- Refuses a schema in which tenure is installed already: `tenure migrate` brings that one up to
-- date. Do not rename the schema afterwards: the functions have its name fixed.
--
-- This is the only list of the order in which the files are loaded.

\set ON_ERROR_STOP on
\set QUIET on
\set SHOW_CONTEXT never

\if :{?schema}
\else
\set schema tenure
\endif

begin;

set local tenure.schema = :'schema';
\ir prelude.sql

do $$
begin
  if to_regclass(format('%I.alembic_version', current_schema())) is not null then
    raise exception using
      errcode = 'duplicate_object',
      message = format('schema %I is in use already: it has a table alembic_version', current_schema()),
      hint    = 'To bring an older tenure up to date, run: tenure migrate';
  end if;
end;
$$;

\ir version.sql
\ir schema.sql
