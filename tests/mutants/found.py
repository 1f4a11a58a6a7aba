"""All mutants there are."""

from __future__ import annotations

from pathlib import Path

from tests.mutants import postgres_predicates, sqlite_predicates
from tests.mutants.mutant import Kind, Mutant
from tests.mutants.postgres_source import functions
from tests.mutants.variants import VARIANTS, Variant

SQL = Path(__file__).resolve().parents[2] / "sql"


def predicates() -> list[Mutant]:
    """Each predicate of each function, and of each SQLite statement, taken out."""
    postgres = [m for path in functions() for m in postgres_predicates.mutants(path)]
    sqlite = [
        m
        for place, sql in sqlite_predicates.statements().items()
        for m in sqlite_predicates.mutants(place, sql)
    ]
    return [*postgres, *sqlite]


def variants() -> list[Mutant]:
    """Each wrong variant that was written by hand. Raises ValueError for one that fits nowhere."""
    return [_edited(variant) for variant in VARIANTS]


def _edited(variant: Variant) -> Mutant:
    path = SQL / variant.file
    source, (old, new) = path.read_text("utf-8"), variant.edit
    if source.count(old) != 1:
        raise ValueError(f"{variant.name}: {variant.file} has the text {source.count(old)} times")
    return Mutant(
        kind=Kind.POSTGRES,
        place=path.stem,
        change=variant.name,
        source=source.replace(old, new),
        tests=variant.killed_by,
    )
