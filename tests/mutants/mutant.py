"""One change that makes tenure wrong."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    POSTGRES = "postgres"
    """`source` is the file of the function `place`."""
    SQLITE = "sqlite"
    """`source` is the statement of `place`, which is `module.CONSTANT`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A place, what was taken from it or changed there, and the source that is left."""

    kind: Kind
    place: str
    change: str
    source: str
    tests: tuple[str, ...] = ()
    """Node ids of tests each of which must notice; empty: any test of the backend."""

    @property
    def key(self) -> str:
        """Unique, and the same until the predicate itself is another."""
        return f"{self.kind} {self.place}: {self.change}"


def numbered(predicates: list[str]) -> list[str]:
    """Tell equal predicates of one place apart by their order."""
    seen: dict[str, int] = {}
    names = []
    for predicate in predicates:
        seen[predicate] = seen.get(predicate, 0) + 1
        names.append(predicate if seen[predicate] == 1 else f"{predicate} ({seen[predicate]})")
    return names
