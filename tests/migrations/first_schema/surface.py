"""What callers of a schema rely on: the calls that can be made, and the columns of the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.migrations.first_schema import calls

Connection = psycopg.Connection[Any]

FILE = Path(__file__).with_name("surface.txt")


def surface(connection: Connection) -> list[str]:
    """Every call that a role can be given and every statement of the client, with its columns.

    Such as `select * from tenure.channel() -> channel text`. Wants to create a role, for a moment.
    """
    return [
        f"{statement} -> {columns(connection, statement)}"
        for statement in [*_by_position(connection), *calls.statements(connection)]
    ]


def _by_position(connection: Connection) -> list[str]:
    """A call of each function that is granted with the fewest arguments, and one with all."""
    statements = []
    for name, fewest, types in _granted(connection):
        for count in sorted({fewest, len(types)}):
            places = [f"${n}::{type_}" for n, type_ in enumerate(types[:count], start=1)]
            statements.append(f"select * from tenure.{name}({', '.join(places)})")
    return statements


def _granted(connection: Connection) -> list[tuple[str, int, list[str]]]:
    """By name: how few arguments will do, and the types of all."""
    role = sql.Identifier(f"surface of {connection.info.dbname}")
    with connection.transaction(force_rollback=True):
        connection.execute(sql.SQL("create role {}").format(role))
        for word in ("produce", "work", "operate", "observe"):
            connection.execute("select tenure.grant_role(%s, %s)", [role.as_string()[1:-1], word])
        return connection.execute(
            """
            select p.proname, p.pronargs - p.pronargdefaults,
                   array(select format_type(a.oid, null)
                           from unnest(p.proargtypes) with ordinality as a(oid, place)
                          order by a.place)
              from pg_proc as p
             where p.pronamespace = 'tenure'::regnamespace
               and has_function_privilege(%s, p.oid, 'execute')
             order by p.proname
            """,
            [role.as_string()[1:-1]],
        ).fetchall()


def columns(connection: Connection, statement: str) -> str:
    """The names and types of a statement's columns; raises psycopg.Error if it means nothing."""
    server = connection.pgconn
    prepared = server.prepare(b"", statement.encode())
    if prepared.error_message:
        raise psycopg.errors.error_from_result(prepared)
    described = server.describe_prepared(b"")
    names = [described.fname(n) or b"" for n in range(described.nfields)]
    types = [described.ftype(n) for n in range(described.nfields)]
    spelled = connection.execute(
        """
        select format_type(t.oid, null)
          from unnest(%s::bigint[]) with ordinality as t(oid, place)
         order by t.place
        """,
        [types],
    ).fetchall()
    return ", ".join(
        f"{name.decode()} {type_}" for name, (type_,) in zip(names, spelled, strict=True)
    )
