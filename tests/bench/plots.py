"""Draws what is easier seen than read; runs in an environment of its own, with matplotlib."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.bench.figures import OURS, Results

CONNECTIONS = (1, 2, 4, 8, 16)
WINDOW = 3.0
"""Seconds over which a rate is taken."""


def draw(folder: Path, to: Path) -> None:
    """Each plot whose results are there, as one SVG file."""
    to.mkdir(parents=True, exist_ok=True)
    mpl.rcParams["svg.hashsalt"] = "tenure"  # the same results, the same file
    for name, measure, lines, title, x, y in (
        ("held", "e", _held, "Drained while a snapshot is held", "seconds", "jobs/s"),
        ("enqueue", "bd", _enqueue, "Enqueued one by one", "connections at once", "jobs/s"),
        ("latency", "bd", _latency, "From the call to the handler", "ms", "share of jobs"),
    ):
        results = folder / f"{measure}.json"
        if not results.exists():
            continue
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        for who, xs, ys in lines(Results.load(results)):
            axes.plot(xs, ys, label=who, linewidth=2.5 if who == OURS else 1.2)
        _dress(axes, title, x, y, logarithmic=name == "latency")
        figure.savefig(to / f"{name}.svg", metadata={"Date": None})


Lines = Iterator[tuple[str, list[float], list[float]]]


def _held(results: Results) -> Lines:
    for who, line in results.series.get("e snapshot default", {}).items():
        xs, ys = [], []
        start = 0
        for end, (t, n) in enumerate(line):
            if t - line[start][0] >= WINDOW:
                xs.append(t)
                ys.append((n - line[start][1]) / (t - line[start][0]))
                start = end
        yield who, xs, ys


def _enqueue(results: Results) -> Lines:
    for who in results.about:
        points = {n: found for n in CONNECTIONS if (found := results.of(f"single {n}", who))}
        yield who, [float(n) for n in points], [median(found) for found in points.values()]


def _latency(results: Results) -> Lines:
    for who, samples in results.samples.get("from call", {}).items():
        yield who, sorted(samples), [(i + 1) / len(samples) for i in range(len(samples))]


def _dress(axes: Axes, title: str, x: str, y: str, *, logarithmic: bool) -> None:
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_ylim(bottom=0)
    if logarithmic:
        axes.set_xscale("log")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
