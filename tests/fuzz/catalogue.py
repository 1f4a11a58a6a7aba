"""The functions that somebody may be given, as the catalogue and the headers of the files say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import psycopg

from migrations.freeze import SQL

FUNCTIONS = """
select p.proname, coalesce(p.proargnames, '{}'),
       array(select format_type(t, null) from unnest(p.proargtypes) with ordinality as a(t, n)
              order by n),
       p.pronargdefaults,
       array(select r.rolname from pg_roles as r
              where r.rolname = any (%s) and has_function_privilege(r.oid, p.oid, 'execute'))
  from pg_proc as p
 where p.pronamespace = 'tenure'::regnamespace
 order by p.proname
"""

CODES = re.compile(r"\b(TN\d{3}|\d[0-9A-Z]{4})\b")


@dataclass(frozen=True, slots=True)
class Function:
    """One public function."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    """Names and types."""
    defaults: int
    """How many of the last have one."""
    roles: frozenset[str]
    """Who may call it, beside the owner."""
    codes: frozenset[str]
    """The SQLSTATEs that its header names."""


def public_functions(owner: psycopg.Connection[Any], roles: list[str]) -> list[Function]:
    """Those that one of the roles may call, and those that no header calls internal."""
    found = []
    for name, names, types, defaults, callers in owner.execute(FUNCTIONS, [roles]):
        header = _header(name)
        if callers or not _is_internal(header):
            parameters = tuple(zip(names, types, strict=True))
            found.append(Function(name, parameters, defaults, frozenset(callers), _codes(header)))
    return found


def _header(name: str) -> str:
    text = (SQL / "functions" / f"{name}.sql").read_text(encoding="utf-8")
    return text.split("create or replace function")[0]


def _is_internal(header: str) -> bool:
    return "(internal)" in header.split("--\n")[0]


def _codes(header: str) -> frozenset[str]:
    said = re.search(
        r"^-- Raises:(.*?)(?=^--$|^-- \w+:|\Z)", header, flags=re.DOTALL | re.MULTILINE
    )
    return frozenset(CODES.findall(said[1])) if said else frozenset()
