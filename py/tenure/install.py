"""Makes one self-contained SQL script of the files in sql/."""

from __future__ import annotations

import re
from importlib.resources.abc import Traversable

from ._resources import sql_root
from .errors import InvalidArgument

_META = re.compile(r"\\(?P<command>\w+)(?: +(?P<argument>\S+))?")
_ONLY_FOR_PSQL = {"set", "if", "else", "endif"}


def install_script(schema: str = "tenure") -> str:
    """What sql/install.sql would run in a schema, as plain SQL that any client can send.

    It has its own begin and commit, so the connection must not be in a transaction. Raises
    InvalidArgument for a malformed schema name.
    """
    literal = _literal(checked_schema(schema))
    return "".join(_resolved(sql_root(), "install.sql", literal))


def choose_schema(schema: str) -> str:
    """SQL that makes a schema, if need be, and the search_path of the present transaction.

    Raises InvalidArgument for a malformed schema name.
    """
    setting = f"set local tenure.schema = {_literal(checked_schema(schema))};\n"
    return setting + sql_root().joinpath("prelude.sql").read_text(encoding="utf-8")


def checked_schema(schema: str) -> str:
    """The name itself; raises InvalidArgument when PostgreSQL could have no such schema."""
    size = len(schema.encode("utf-8", "surrogatepass"))
    if not 1 <= size <= 63:
        raise InvalidArgument(f"a schema name has 1 to 63 bytes, not {size}")
    if "\0" in schema or not schema.isprintable():
        raise InvalidArgument(f"a schema name has no control characters: {schema!r}")
    if schema.startswith("pg_"):
        raise InvalidArgument(f"schema names that start with pg_ are PostgreSQL's own: {schema}")
    return schema


def load_order() -> list[str]:
    """The files that sql/install.sql loads, in its order."""
    return included(sql_root().joinpath("install.sql").read_text(encoding="utf-8"))


def included(script: str) -> list[str]:
    """The files that the \\ir lines of a script name, in their order."""
    return re.findall(r"^\\ir (\S+)$", script, flags=re.MULTILINE)


def _resolved(root: Traversable, name: str, schema: str) -> list[str]:
    parts = []
    for line in root.joinpath(name).read_text(encoding="utf-8").splitlines(keepends=True):
        meta = _META.match(line)
        if meta is None:
            parts.append(line.replace(":'schema'", schema))
        elif meta["command"] == "ir":
            parts.append(root.joinpath(meta["argument"]).read_text(encoding="utf-8"))
        elif meta["command"] not in _ONLY_FOR_PSQL:
            raise ValueError(f"{name} has a psql command that plain SQL lacks: {line.strip()}")
    return parts


def _literal(text: str) -> str:
    """As quote_literal() does: right whatever standard_conforming_strings says."""
    quoted = "'" + text.replace("'", "''").replace("\\", "\\\\") + "'"
    return f" E{quoted}" if "\\" in text else quoted
