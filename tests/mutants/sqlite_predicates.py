"""Takes predicates out of the SQLite statements, one at a time."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import sqlglot
from sqlglot import exp

import tenure
from tests.mutants.mutant import Kind, Mutant, numbered

_DEFINITION = re.compile(r"^([A-Z][A-Z_]*) = ", re.MULTILINE)
_STATEMENT = re.compile(r"\s*(select|insert|update|delete|with)\s")


@dataclass(frozen=True, slots=True)
class Site:
    """Where a predicate can be taken out: by putting a constant in its place."""

    word: str
    node: exp.Expr


def modules() -> Iterator[ModuleType]:
    for module in pkgutil.iter_modules(tenure.__path__):
        if module.name.startswith("sqlite"):
            yield importlib.import_module(f"tenure.{module.name}")


def statements() -> dict[str, str]:
    """The SQL of each constant, by `module.CONSTANT` of the module that defines it."""
    found: dict[str, str] = {}
    for module in modules():
        for name in _DEFINITION.findall(inspect.getsource(module)):
            value = getattr(module, name)
            if isinstance(value, str) and _STATEMENT.match(value):
                found[f"{module.__name__.removeprefix('tenure.')}.{name}"] = value
    return found


def mutants(place: str, sql: str) -> list[Mutant]:
    """One for every predicate of a statement."""
    found = without_one(sql)
    names = numbered([predicate for predicate, _ in found])
    return [
        Mutant(kind=Kind.SQLITE, place=place, change=name, source=source)
        for name, (_, source) in zip(names, found, strict=True)
    ]


def without_one(sql: str) -> list[tuple[str, str]]:
    """Each predicate of the statement, with the statement that lacks it."""
    statement = parsed(sql)
    found = []
    for site in list(_sites(statement)):
        predicate = f"{site.word} {printed(site.node)}"
        # A condition that asks for less, an OR that allows less, a branch never taken.
        constant = exp.true() if site.word in ("and", "where") else exp.false()
        site.node.replace(constant)
        found.append((predicate, printed(statement)))
        constant.replace(site.node)
    return found


def replace(place: str, sql: str) -> None:
    """Put another statement in the place of a constant, in every module that has it."""
    name, constant = place.split(".")
    original = getattr(importlib.import_module(f"tenure.{name}"), constant)
    for module in modules():
        for attribute, value in list(vars(module).items()):
            if value is original:
                setattr(module, attribute, sql)


def parsed(sql: str) -> exp.Expr:
    return sqlglot.parse_one(sql, dialect="sqlite")


def printed(node: exp.Expr) -> str:
    return node.sql(dialect="sqlite")


def _sites(statement: exp.Expr) -> Iterator[Site]:
    for node in statement.walk(bfs=False):
        if isinstance(node, exp.Connector):
            if type(node.parent) is not type(node):
                word = "and" if isinstance(node, exp.And) else "or"
                yield from (Site(word, arm) for arm in node.flatten(unnest=False))
        elif isinstance(node, exp.Where) and not isinstance(node.this, exp.And):
            yield Site("where", node.this)
        elif isinstance(node, exp.If):
            yield Site("when", node.this)
