"""Measure i: what tenure's features cost a drain."""

from __future__ import annotations

from tests.bench.figures import Figure, Results
from tests.bench.measures import Turn

FEATURES = {
    "": "i: drain of plain jobs",
    "result": "i: drain, a result stored by each job",
    "progress": "i: drain, one progress update by each job",
}
FIGURES = tuple(Figure(f"i {feature}", words) for feature, words in FEATURES.items())


def features(turn: Turn, results: Results, *, jobs: int) -> None:
    for feature in FEATURES:
        turn.bulk(jobs)
        results.add(f"i {feature}", turn.peer.name, turn.drain(jobs, feature=feature))
