"""The source files that are analysed: the running interpreter's own standard library."""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass
from pathlib import Path

NOT_ITS_OWN = {"site-packages", "dist-packages", "__pycache__"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file, and the module's name that its place gives it."""

    path: Path
    module: str


def sources() -> list[Source]:
    """Every source file, in the order of the paths."""
    root = Path(sysconfig.get_path("stdlib"))
    return [
        Source(path=path, module=_module(path.relative_to(root)))
        for path in sorted(root.rglob("*.py"))
        if not NOT_ITS_OWN & {*path.relative_to(root).parts}
    ]


def take(found: list[Source], modules: tuple[str, ...]) -> list[Source]:
    """Remove one source for each of the modules; another where this Python has none."""
    taken = []
    for module in modules:
        at = next((i for i, source in enumerate(found) if source.module == module), -1)
        taken.append(found.pop(at))
    return taken


def sample(found: list[Source], most: int) -> list[Source]:
    """At most so many, taken evenly."""
    if len(found) <= most:
        return found
    return [found[i * len(found) // most] for i in range(most)]


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
