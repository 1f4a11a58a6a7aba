"""What a database must be, have and allow for a run, asked before anything is made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tenure.errors import SchemaOutdated, TenureError
from tenure.verify import dismantle
from tenure.verify.cells import Cell
from tenure.verify.session import identifier, literal
from tenure.verify.stage import Stage
from tenure.verify.words import ROW_BY_FUNCTIONS

_PRODUCE = {"enqueue", "enqueue_many"}
_OPERATE = {"cancel", "retry", "pause", "resume"}


class Unfit(TenureError):
    """Nothing can be verified there."""


def check_server(stage: Stage) -> None:
    """Raise `Unfit` where nobody can write, or everything would be refused."""
    row = stage.ask(
        "select pg_is_in_recovery() as standby,"
        " current_setting('transaction_read_only') as read_only,"
        " current_setting('transaction_isolation') as isolation"
    ).row
    assert row is not None
    if row["standby"] == "t" or row["read_only"] == "on":
        raise Unfit("this session may only read", hint="is it a standby? name the primary")
    if row["isolation"] != "read committed":
        raise Unfit(
            f"sessions here begin under {row['isolation']}, where claims are refused",
            hint="set default_transaction_isolation to 'read committed' for this role",
        )


def check_may_create(stage: Stage) -> None:
    """Raise `Unfit` unless a scratch schema can be made."""
    row = stage.ask(
        "select has_database_privilege(current_database(), 'create') as may,"
        " current_database() as database, current_user as role"
    ).row
    assert row is not None
    if row["may"] != "t":
        role, database = identifier(row["role"] or ""), identifier(row["database"] or "")
        raise Unfit(
            f"role {row['role']} may not make a scratch schema in {row['database']}",
            hint=f"grant create on database {database} to {role}; or test an existing install"
            " with --schema",
        )


def check_install(stage: Stage, cells: Iterable[Cell]) -> None:
    """Raise unless a schema has the functions that cells call, and this role may call them."""
    missing, closed = _unusable(stage, sorted(_functions(cells)))
    role = stage.ask("select current_user").text
    if missing is None:
        raise SchemaOutdated(
            f"there is no schema {stage.schema}", hint="leave --schema out for a scratch schema"
        )
    if missing:
        raise SchemaOutdated(
            f"schema {stage.schema} has no function {', '.join(missing)}", hint="tenure migrate"
        )
    if closed:
        words = {
            "produce" if f in _PRODUCE else "operate" if f in _OPERATE else "work" for f in closed
        }
        grants = " ".join(
            f"select {identifier(stage.schema)}.grant_role({literal(role)}, '{word}');"
            for word in sorted(words)
        )
        raise Unfit(
            f"role {role} may not call {', '.join(closed)} in schema {stage.schema}",
            hint=f"its owner can: {grants}",
        )
    stage.rows_are_seen = (
        stage.ask(
            "select coalesce(has_table_privilege(to_regclass('@jobs'), 'select')"
            " and has_table_privilege(to_regclass('@attempts'), 'select'), false)"
        ).text
        == "t"
    )


def _functions(cells: Iterable[Cell]) -> set[str]:
    statements = {line.sql for cell in cells for line in cell.lines}
    statements |= {ROW_BY_FUNCTIONS, *dismantle.STATEMENTS}
    return {name for sql in statements for name in re.findall(r"@(\w+)\(", sql)}


def _unusable(stage: Stage, names: Sequence[str]) -> tuple[list[str] | None, list[str]]:
    """The functions that are missing, and those that are closed; None when all of it is."""
    namespace = literal(stage.schema)
    if stage.ask(f"select oid from pg_namespace where nspname = {namespace}").text == "nothing":
        return None, []
    missing, closed = [], []
    for name in names:
        may = stage.ask(
            "select bool_or(has_function_privilege(p.oid, 'execute')"
            f" and has_schema_privilege(n.oid, 'usage')) from pg_proc as p"
            f" join pg_namespace as n on n.oid = p.pronamespace"
            f" where n.nspname = {namespace} and p.proname = {literal(name)}"
        ).text
        if may == "null":
            missing.append(name)
        elif may != "t":
            closed.append(name)
    return missing, closed
