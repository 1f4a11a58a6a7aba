"""Reads every file of sql/ with PostgreSQL's own parser, down to the bodies of functions."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pglast
from pglast import ast
from pglast.enums import VariableSetKind

SQL = Path(__file__).resolve().parents[2] / "sql"

STATED = {"language", "volatility", "security"}
ABLE_ANYWHERE = {"clock", "poll_floor", "queue_key"}
"""Functions for others that touch nothing of ours, so they need no rights and no path."""


def main() -> None:
    complaints = [
        f"sql/{file.relative_to(SQL)}: {complaint}"
        for file in sorted(SQL.rglob("*.sql"))
        for complaint in _complaints(file)
    ]
    if complaints:
        sys.exit("\n".join(complaints))


def _complaints(file: Path) -> Iterator[str]:
    text = file.read_text(encoding="utf-8")
    if not text.startswith("-- "):
        yield "starts without a comment that says what it is for"
    if file.name == "install.sql":
        return  # psql's commands are not SQL
    try:
        statements = [raw.stmt for raw in pglast.parse_sql(text)]
    except pglast.Error as error:
        yield str(error)
        return
    match file.parent.name:
        case "functions":
            yield from _function_complaints(file.stem, text, statements)
        case "views":
            yield from _view_complaints(file.stem, statements)


def _function_complaints(name: str, text: str, statements: list[Any]) -> Iterator[str]:
    match statements:
        case [ast.CreateFunctionStmt() as function]:
            pass
        case _:
            yield "holds something else than one function"
            return
    if [part.sval for part in function.funcname or ()] != [name]:
        yield f"its function is not named {name}, without a schema"
    if not re.match(rf"-- {name}\((.|\n-- )*?\)(\n-- )? +-> \S", text):
        yield f"does not begin with: -- {name}(arguments) -> type"
    clauses: tuple[Any, ...] = function.options or ()
    yield from _clause_complaints(clauses)
    if _is_invoker(clauses) and "(internal)" not in text and name not in ABLE_ANYWHERE:
        yield "is called by others, so it has to be security definer"
    if any(c.defname == "language" and c.arg.sval == "plpgsql" for c in clauses):
        try:
            pglast.parse_plpgsql(_in_known_types(text))
        except pglast.Error as error:
            yield str(error)


def _in_known_types(text: str) -> str:
    """The parser knows no type of ours: it takes each for a record, of which it has no arrays."""
    schema = (SQL / "schema.sql").read_text(encoding="utf-8")
    ours = re.findall(r"^create (?:type|table) (\w+)", schema, flags=re.MULTILINE)
    enums = re.findall(r"^create type (\w+) as enum", schema, flags=re.MULTILINE)
    text = re.sub(rf"\b({'|'.join(ours)})\[\]", "text[]", text)
    return re.sub(rf"\b({'|'.join(enums)})\b", "text", text)


def _clause_complaints(clauses: tuple[Any, ...]) -> Iterator[str]:
    if missing := STATED - {clause.defname for clause in clauses}:
        yield f"does not state its {' and '.join(sorted(missing))}"
    settings = {clause.arg.name: clause.arg.kind for clause in clauses if clause.defname == "set"}
    if _is_invoker(clauses):
        if settings:
            yield "is security invoker and has settings: it is to be part of what calls it"
    elif settings.get("search_path") != VariableSetKind.VAR_SET_CURRENT:
        yield "has no `set search_path from current`"


def _is_invoker(clauses: tuple[Any, ...]) -> bool:
    return any(c.defname == "security" and not c.arg.boolval for c in clauses)


def _view_complaints(name: str, statements: list[Any]) -> Iterator[str]:
    match statements:
        case [ast.ViewStmt(view=ast.RangeVar(relname=found, schemaname=None)), *_]:
            if found != name:
                yield f"its view is named {found}, not {name}"
        case _:
            yield "does not begin with a view that names no schema"


if __name__ == "__main__":
    main()
