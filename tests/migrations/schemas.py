"""What is in a schema, for comparing two of them."""

from __future__ import annotations

import psycopg
from psycopg import sql

from tests.tools import databases


def schema_of(dsn: str, schema: str = "tenure") -> list[str]:
    """The lines of the schema as pg_dump writes it, without the version table."""
    quoted = '"' + schema.replace('"', '""') + '"'
    dump = databases.client(
        "pg_dump", "--schema-only", f"--exclude-table={quoted}.alembic_version", "-d", dsn
    )
    # Every dump carries a random key on these lines.
    random = ("\\restrict", "\\unrestrict")
    return [line for line in dump.splitlines() if not line.startswith(random)]


def rows_of(dsn: str, table: str, schema: str = "tenure") -> list[str]:
    """The rows of a table, as COPY writes them."""
    with psycopg.connect(dsn) as connection:
        copying = sql.SQL("copy {} to stdout").format(sql.Identifier(schema, table))
        with connection.cursor().copy(copying) as copy:
            return b"".join(map(bytes, copy)).decode().splitlines()


def bodies_of(dsn: str, schema: str = "tenure") -> dict[str, str]:
    """The text of each function, by its name and arguments, as the catalog keeps it."""
    with psycopg.connect(dsn) as connection:
        return dict(
            connection.execute(
                """
                select p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')',
                       p.prosrc
                  from pg_proc as p
                  join pg_namespace as n on n.oid = p.pronamespace
                 where n.nspname = %s
                """,
                (schema,),
            ).fetchall()
        )


def left_in(dsn: str, schema: str = "tenure") -> list[str]:
    """Everything in a schema, described; the schema itself must be there."""
    with psycopg.connect(dsn) as connection:
        [oid] = connection.execute(
            "select n.oid from pg_namespace as n where n.nspname = %s", (schema,)
        ).fetchall()
        found = connection.execute(
            """
            select pg_describe_object(d.classid, d.objid, d.objsubid)
              from pg_depend as d
             where d.refclassid = 'pg_namespace'::regclass and d.refobjid = %s
            """,
            oid,
        )
        return [description for (description,) in found]
