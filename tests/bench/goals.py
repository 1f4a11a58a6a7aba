"""What tenure is to reach, and whether a run of the benchmark says that it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tests.bench import backlog, basic, scale, sqlite, steady
from tests.bench.figures import OURS, Figure, Results, number


@dataclass(frozen=True)
class Goal:
    """A bound for one number of one measure."""

    words: str
    measure: str
    """The name of the results that it is read from."""
    value: Callable[[Results], float | None]
    least: float | None = None
    most: float | None = None

    def met(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (
            self.most is None or value <= self.most
        )

    @property
    def bound(self) -> str:
        return f"at least {self.least:g}" if self.least is not None else f"at most {self.most:g}"


def rows(measured: Mapping[str, Results]) -> list[list[str]]:
    """A table with its head: a line for each goal, met, missed or not measured."""
    table = [["goal", "bound", "measured", ""]]
    for goal in goals():
        value = goal.value(measured[goal.measure]) if goal.measure in measured else None
        said = (
            ["-", "not measured"]
            if value is None
            else [number(value), "met" if goal.met(value) else "**missed**"]
        )
        table.append([goal.words, goal.bound, *said])
    return table


def goals() -> Iterator[Goal]:
    """In the order of the measures."""
    basics = {(figure.key, figure.words): figure for figure in basic.FIGURES}
    for (key, words), figure in basics.items():
        if key == "bulk":
            yield Goal(f"{words}, to the best peer", "ac", _ratio(figure), least=1.2)
        if key.startswith("single 16"):
            yield Goal(f"{words}, to the best peer", "bd", _ratio(figure), least=2)
        if key.startswith("drain"):
            yield Goal(f"{words}, to the best peer", "ac", _ratio(figure), least=1.5)
        if key == "from call":
            yield Goal(f"{words}, to the best peer", "bd", _ratio(figure), most=1)
    for figure in steady.HELD:
        least = 0.9 if "snapshot" in figure.key else 0.75 if "write" in figure.key else None
        if figure.key.endswith("kept") and least is not None:
            yield Goal(figure.words, "e", _value(figure), least=least)
    for figure in backlog.FIGURES:
        if figure.key.endswith("kept"):
            yield Goal(figure.words, "f", _value(figure), least=0.9)
    for figure in steady.COSTS:
        if figure.key in ("g server", "g wal"):
            words = f"{figure.words}, to the best peer that keeps history"
            yield Goal(words, "g", _ratio_with_history(figure), most=1)
    yield Goal("h: the least of a drain to the best by fewer processes", "h", _falls, least=0.9)
    for figure in sqlite.FIGURES:
        bounds = {"least": 2.0} if figure.more_is_better else {"most": 0.5}
        yield Goal(f"{figure.words}, to the best peer", "j", _ratio(figure), **bounds)


def _ratio(figure: Figure) -> Callable[[Results], float | None]:
    return lambda results: results.ratio(figure)


def _value(figure: Figure) -> Callable[[Results], float | None]:
    return lambda results: results.value(figure, OURS)


def _ratio_with_history(figure: Figure) -> Callable[[Results], float | None]:
    return lambda results: results.ratio(figure, having="history")


def _falls(results: Results) -> float | None:
    drains = [scale_value(results, processes) for processes in scale.PROCESSES]
    if any(drain is None for drain in drains):
        return None
    known = [drain for drain in drains if drain is not None]
    return min(now / max(known[:i]) for i, now in enumerate(known) if i)


def scale_value(results: Results, processes: int) -> float | None:
    """How fast so many processes drained."""
    figure = next(figure for figure in scale.FIGURES if figure.key == f"h {processes}")
    return results.value(figure, OURS)
