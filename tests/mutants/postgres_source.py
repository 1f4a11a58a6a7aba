"""Finds the SQL in the functions of sql/functions, and puts other SQL in its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pglast

FUNCTIONS = Path(__file__).resolve().parents[2] / "sql" / "functions"

_BODY = re.compile(r"^as \$\$", re.MULTILINE)
_IS_SQL = re.compile(r"^  language sql$", re.MULTILINE)
# The parser has no catalog. It takes an unknown type for a record, of which there can be neither
# an array nor one among several targets of INTO.
_UNKNOWN_TYPE = re.compile(r"^(\s+v_\w+\s+)(\w+\[\]|job_status)", re.MULTILINE)

_BRANCHES = {
    "PLpgSQL_stmt_if": "if",
    "PLpgSQL_if_elsif": "elsif",
    "PLpgSQL_stmt_exit": "exit",
    "PLpgSQL_stmt_while": "while",
}
_STATEMENT, _EXPRESSION = 0, 2
"""How plpgsql parses a piece; with a greater number it is `target := expression`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of SQL in the source of a function."""

    source: str
    start: int
    end: int
    opening: str | None
    """What stands there for the SELECT of `sql`; None where the piece is a whole statement."""
    sql: str
    into: str = ""
    """INTO with its targets, which may stand at the end of any statement."""
    branch: str = ""
    """The words before a condition."""

    def replaced(self, sql: str) -> str:
        """The source of the function with another statement in the place of `sql`."""
        if self.opening is not None:
            sql = self.opening + sql.removeprefix("SELECT ")
        into = self.into and f" {self.into}"
        return self.source[: self.start] + sql + into + self.source[self.end :]


def functions() -> list[Path]:
    return sorted(FUNCTIONS.glob("*.sql"))


@cache
def callers(name: str) -> frozenset[str]:
    """The function and all that call it, at whatever distance."""
    called = re.compile(rf"\b{name}\(")
    direct = {
        path.stem for path in functions() if path.stem != name and called.search(path.read_text())
    }
    return frozenset({name}).union(*map(callers, direct))


def pieces(source: str) -> list[Piece]:
    """All SQL in one function, in the order of the source."""
    if _IS_SQL.search(source):
        return [_body(source)]
    tree = pglast.parse_plpgsql(_UNKNOWN_TYPE.sub(r"\1text", source))
    opening = _BODY.search(source)
    assert opening is not None
    body = opening.end()
    lines = [body, *(newline.end() for newline in re.finditer("\n", source))]
    lines = [start for start in lines if start >= body]
    found = [
        _located(source, lines[line - 1], kind, expression)
        for kind, line, expression in _expressions(tree, "", 1)
    ]
    return sorted(found, key=lambda piece: piece.start)


def _body(source: str) -> Piece:
    start = source.index("$$\n") + 3
    end = source.rindex(";\n$$")
    return Piece(source=source, start=start, end=end, opening=None, sql=source[start:end])


def _expressions(tree: Any, kind: str, line: int) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Each expression with the kind of its statement, and the line on which that begins."""
    if isinstance(tree, list):
        for item in tree:
            yield from _expressions(item, kind, line)
    elif isinstance(tree, dict):
        line = tree.get("lineno", line)
        for name, value in tree.items():
            if name == "PLpgSQL_expr":
                yield kind, line, value
            else:
                inner = name if name.startswith("PLpgSQL_") else kind
                yield from _expressions(value, inner, line)


def _located(source: str, line: int, kind: str, expression: dict[str, Any]) -> Piece:
    text, mode = expression["query"], expression["parseMode"]
    performs = kind == "PLpgSQL_stmt_perform"
    shown = text.removeprefix("SELECT") if performs else text
    start = _find(source, line, shown)
    end = start + len(shown)
    # Where the source has INTO, the parser shows as many blanks.
    hidden = [i for i, c in enumerate(shown) if c.isspace() and not source[start + i].isspace()]
    into = source[start + hidden[0] : start + hidden[-1] + 1] if hidden else ""
    if performs:
        return Piece(
            source=source, start=start - len("perform"), end=end, opening="perform ", sql=text
        )
    if mode == _STATEMENT:
        return Piece(source=source, start=start, end=end, opening=None, sql=text, into=into)
    branch = _BRANCHES.get(kind, "")
    if branch == "exit":
        branch = " ".join(source[:start].split()[-2:])
    target = "" if mode == _EXPRESSION else text[: text.index(":=") + 3]
    return Piece(
        source=source,
        start=start,
        end=end,
        opening=target,
        sql=f"SELECT {text.removeprefix(target)}",
        branch=branch,
    )


def _find(source: str, start: int, shown: str) -> int:
    """Where the text stands; its blanks stand for anything."""
    indent = len(shown) - len(shown.lstrip())
    word = shown.split()[0]
    while (at := source.find(word, start)) >= 0:
        begin = at - indent
        seen = source[begin : begin + len(shown)]
        if all(c == s or c.isspace() for c, s in zip(shown, seen, strict=True)):
            return begin
        start = at + 1
    raise ValueError(f"not in the function: {shown}")
