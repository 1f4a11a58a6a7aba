"""Counts over many schedules, as a table."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.schedules import readable
from tests.schedules.perform import Performance, Theatre
from tests.schedules.play import Family

ENOUGH = 10
"""Violations after which a family is given up."""


@dataclass(slots=True, kw_only=True)
class Counts:
    """What came of the schedules of one family on one backend."""

    backend: str
    family: str
    schedules: int = 0
    steps: int = 0
    blocked: int = 0
    words: Counter[str] = field(default_factory=Counter)
    violations: int = 0
    seconds: float = 0
    failures: list[str] = field(default_factory=list)
    """The first ones, to be read."""

    def add(self, done: Performance) -> None:
        self.schedules += 1
        self.steps += done.steps
        self.blocked += done.blocked
        self.words += done.words
        if done.violations:
            self.violations += 1
            if len(self.failures) < 2:
                self.failures.append(readable.failure(done, self.backend))


def counted(theatre: Theatre, backend: str, family: Family, orders: Iterable[str]) -> Counts:
    """Perform schedules of one family, each once."""
    counts = Counts(backend=backend, family=family.name)
    started = time.monotonic()
    seen = set()
    for order in orders:
        if order in seen:
            continue
        seen.add(order)
        counts.add(theatre.perform(family, order))
        if counts.violations == ENOUGH:
            break
    counts.seconds = time.monotonic() - started
    return counts


def table(results: list[Counts], families: dict[str, Family]) -> list[str]:
    """A line for each family and backend, then how often each verb was answered what."""
    lines = [f"{'family':<28}{'schedules':>10}{'steps':>9}{'blocked':>9}{'violations':>12}{'s':>7}"]
    for backend in sorted({r.backend for r in results}):
        mine = [r for r in results if r.backend == backend]
        lines += ["", backend]
        for counts in sorted(mine, key=lambda r: list(families).index(r.family)):
            lines.append(_line(f"  {counts.family}", [counts]))
            lines.append(f"      {readable.scripts(families[counts.family])}")
        lines.append(_line(f"  {len(mine)} families", mine))
    return [*lines, "", *_answers(results)]


def _line(name: str, some: list[Counts]) -> str:
    return (
        f"{name:<28}{sum(r.schedules for r in some):>10,}{sum(r.steps for r in some):>9,}"
        f"{sum(r.blocked for r in some):>9,}{sum(r.violations for r in some):>12,}"
        f"{sum(r.seconds for r in some):>7.1f}"
    )


def _answers(results: list[Counts]) -> list[str]:
    backends = sorted({r.backend for r in results})
    sums = {b: sum((r.words for r in results if r.backend == b), Counter()) for b in backends}
    names = sorted(set().union(*sums.values()))
    return [
        f"{'answers':<52}" + "".join(f"{backend:>10}" for backend in backends),
        *(
            f"  {name:<50}" + "".join(f"{sums[backend][name]:>10,}" for backend in backends)
            for name in names
        ),
    ]
