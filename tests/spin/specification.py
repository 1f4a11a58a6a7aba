"""What a specification consists of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
TRACES = FOLDER / "traces"


@dataclass(frozen=True, slots=True)
class Size:
    """A bounded size in which a specification is checked whole."""

    name: str
    defines: str
    liveness: bool = False
    """Look for cycles that break the `ltl` property, with every process given its turn, instead
    of for broken assertions and for states at rest that are no end: pan overlooks those then."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A specification with one step of the protocol broken: the checker must find out."""

    name: str
    """The macro that breaks it."""
    says: str
    """What is broken, to complete the sentence "a tenure in which …"."""
    defines: str = ""
    liveness: bool = False


@dataclass(frozen=True, slots=True)
class Specification:
    file: str
    rest: str
    """The property that a state at rest breaks when it is no end, and a cycle that never ends."""
    sizes: tuple[Size, ...]
    small: str
    """The size of the variants, which add to it: what is not needed makes a trace longer."""
    variants: tuple[Variant, ...]

    @property
    def path(self) -> Path:
        return FOLDER / self.file

    def trace(self, variant: Variant) -> Path:
        """Where the counterexample of a variant is kept."""
        return TRACES / f"{self.path.stem}-{variant.name.lower()}.txt"
