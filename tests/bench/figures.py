"""From samples to what is quoted: medians, how far they spread, ratios to the best peer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Self

OURS = "tenure"


@dataclass(frozen=True)
class Figure:
    """One line of a table: what becomes of the samples that have its key."""

    key: str
    words: str
    unit: str = "jobs/s"
    reduce: Callable[[Sequence[float]], float] = median
    more_is_better: bool = True


@dataclass
class Results:
    """All samples of a run, by key of the figure and by peer."""

    about: dict[str, dict[str, str]] = field(default_factory=dict)
    """Version and settings of each that took part."""
    machine: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    """Who could not take part, and why."""
    shown: list[str] = field(default_factory=list)
    """Who is no peer and not compared."""
    samples: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    series: dict[str, dict[str, list[tuple[float, float]]]] = field(default_factory=dict)
    """What becomes a line of a plot."""

    def add(self, key: str, who: str, *values: float) -> None:
        self.samples.setdefault(key, {}).setdefault(who, []).extend(values)

    def of(self, key: str, who: str) -> list[float]:
        return self.samples.get(key, {}).get(who, [])

    def value(self, figure: Figure, who: str) -> float | None:
        samples = self.of(figure.key, who)
        return figure.reduce(samples) if samples else None

    def best_peer(self, figure: Figure, *, having: str = "") -> tuple[str, float] | None:
        """The peer with the best value, of those that have one, and are said to have so."""
        peers = [
            who
            for who, said in self.about.items()
            if who != OURS and who not in self.shown and (not having or having in said)
        ]
        values = [(who, v) for who in peers if (v := self.value(figure, who)) is not None]
        if not values:
            return None
        return (max if figure.more_is_better else min)(values, key=lambda pair: pair[1])

    def ratio(self, figure: Figure, *, having: str = "") -> float | None:
        """tenure's value to the best peer's."""
        ours, best = self.value(figure, OURS), self.best_peer(figure, having=having)
        return None if ours is None or best is None or not best[1] else ours / best[1]

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(vars(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Self:
        stored: dict[str, Any] = json.loads(path.read_text())
        return cls(**stored)


def quantile(share: float) -> Callable[[Sequence[float]], float]:
    """The smallest sample that at least this share of the samples does not exceed."""

    def reduce(samples: Sequence[float]) -> float:
        return sorted(samples)[max(0, math.ceil(share * len(samples)) - 1)]

    return reduce


def number(value: float) -> str:
    """Three digits, and thousands as k: 183, 4.21k, 37.5k."""
    for size, suffix in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * size:
            return _three(value / size) + suffix
    return _three(value)


def _three(value: float) -> str:
    size = abs(value)
    return f"{value:.{0 if size >= 99.95 else 1 if size >= 9.995 else 2}f}"


def cell(results: Results, figure: Figure, who: str) -> str:
    """The value, and from where to where the samples go when there are several to a value."""
    value = results.value(figure, who)
    if value is None:
        return "-"
    samples = results.of(figure.key, who)
    if figure.reduce is not median or len(samples) == 1:
        return number(value)
    return f"{number(value)} ({number(min(samples))}..{number(max(samples))})"


def rows(results: Results, figures: Sequence[Figure]) -> list[list[str]]:
    """A table with its head: a line for each figure that anybody has."""
    who = list(results.about)
    table = [["", *who, "tenure to the best peer"]]
    for figure in figures:
        if not any(results.of(figure.key, name) for name in who):
            continue
        ratio, best = results.ratio(figure), results.best_peer(figure)
        compared = "-" if ratio is None or best is None else f"{ratio:.2f} ({best[0]})"
        cells = [cell(results, figure, name) for name in who]
        table.append([f"{figure.words}, {figure.unit}", *cells, compared])
    return table


def plain(table: Sequence[Sequence[str]]) -> str:
    """The table for a terminal."""
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in table
    )
