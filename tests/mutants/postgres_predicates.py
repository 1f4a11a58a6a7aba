"""Takes predicates out of parsed PostgreSQL statements, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pglast
from pglast import ast
from pglast.enums import BoolExprType
from pglast.stream import RawStream

from tests.mutants.mutant import Kind, Mutant, numbered
from tests.mutants.postgres_source import Piece, pieces

# The fields that hold a whole condition, with the word before it.
_CONDITIONS: dict[type[ast.Node], tuple[str, str]] = {
    ast.SelectStmt: ("whereClause", "where"),
    ast.UpdateStmt: ("whereClause", "where"),
    ast.DeleteStmt: ("whereClause", "where"),
    ast.OnConflictClause: ("whereClause", "where"),
    ast.JoinExpr: ("quals", "on"),
}


@dataclass(frozen=True, slots=True)
class Site:
    """Where a predicate can be taken out: by putting other content in a field of its node."""

    predicate: str
    node: ast.Node
    field: str
    without: Any


def mutants(path: Path) -> list[Mutant]:
    """One for every predicate of a function."""
    found = [
        (predicate, piece.replaced(sql))
        for piece in pieces(path.read_text("utf-8"))
        for predicate, sql in without_one(piece)
    ]
    names = numbered([predicate for predicate, _ in found])
    return [
        Mutant(kind=Kind.POSTGRES, place=path.stem, change=name, source=source)
        for name, (_, source) in zip(names, found, strict=True)
    ]


def without_one(piece: Piece) -> list[tuple[str, str]]:
    """Each predicate of the statement, with the statement that lacks it."""
    statement = parsed(piece.sql)
    found = []
    for site in _sites(piece, statement):
        content = getattr(site.node, site.field)
        setattr(site.node, site.field, site.without)
        found.append((site.predicate, printed(statement)))
        setattr(site.node, site.field, content)
    return found


def parsed(sql: str) -> Any:
    [statement] = pglast.parse_sql(sql)
    return statement.stmt


def printed(node: ast.Node) -> str:
    return str(RawStream()(node))


def _sites(piece: Piece, statement: Any) -> list[Site]:
    sites = list(_inside(statement))
    if piece.branch:
        [target] = statement.targetList
        sites.insert(0, _whole(target, "val", piece.branch, stays=False))
    return sites


def _inside(node: Any) -> Iterator[Site]:
    if isinstance(node, tuple):
        for item in node:
            yield from _inside(item)
    if not isinstance(node, ast.Node):
        return

    if isinstance(node, ast.BoolExpr) and node.boolop != BoolExprType.NOT_EXPR:
        yield from (_arm(node, arm) for arm in node.args or ())
    if type(node) in _CONDITIONS:
        field, word = _CONDITIONS[type(node)]
        condition = getattr(node, field)
        if condition is not None and not _is_and(condition):
            yield _whole(node, field, word, stays=True)
    if isinstance(node, ast.CaseExpr) and node.arg is None:
        yield from (_whole(when, "expr", "when", stays=False) for when in node.args or ())
    for field in node:
        yield from _inside(getattr(node, field))


def _is_and(node: ast.Node) -> bool:
    return isinstance(node, ast.BoolExpr) and node.boolop == BoolExprType.AND_EXPR


def _arm(node: ast.BoolExpr, arm: ast.Node) -> Site:
    """Without one arm, AND asks for less and OR allows less."""
    word = "and" if _is_and(node) else "or"
    neutral = _constant(_is_and(node))
    left = tuple(neutral if other is arm else other for other in node.args or ())
    return Site(f"{word} {printed(arm)}", node, "args", left)


def _whole(node: ast.Node, field: str, word: str, *, stays: bool) -> Site:
    """Without its condition a row is always taken (`stays`), a branch never."""
    return Site(f"{word} {printed(getattr(node, field))}", node, field, _constant(stays))


def _constant(value: bool) -> ast.A_Const:
    return ast.A_Const(isnull=False, val=ast.Boolean(boolval=value))
