"""Measure j: the same as a, c and d on a SQLite file."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench import catalogue
from tests.bench.catalogue import Installed, Peer
from tests.bench.environments import PLACE
from tests.bench.figures import Figure, Results, quantile
from tests.bench.measures import Turn

FIGURES = (
    Figure("bulk", "j: bulk enqueue"),
    Figure("drain 1", "j: drain, one process"),
    Figure("drain 2", "j: drain, two processes"),
    Figure("from call", "j: call to handler, p50", "ms", quantile(0.5), more_is_better=False),
    Figure("from call", "j: call to handler, p99", "ms", quantile(0.99), more_is_better=False),
)


@dataclass(frozen=True)
class File:
    url: str

    def ask(self, sql: str) -> Any:
        with contextlib.closing(sqlite3.connect(self.url, timeout=60)) as connection:
            return connection.execute(sql).fetchone()[0]


@contextlib.contextmanager
def file_turn(peer: Peer, installed: Installed) -> Iterator[Turn]:
    """Begin a turn on a new file, removed at the end."""
    PLACE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PLACE) as folder:
        file = File(str(Path(folder) / "jobs.db"))
        with catalogue.start(peer, installed, file.url) as producer:
            yield Turn(peer, installed, file, producer, producer.ask("prepare"))


def on_a_file(turn: Turn, results: Results, *, jobs: int, latencies: int) -> None:
    """All of measure j."""
    name = turn.peer.name
    called, _ = turn.latencies(latencies)
    results.add("from call", name, *(seconds * 1e3 for seconds in called))
    for processes in (1, 2):
        results.add("bulk", name, turn.bulk(jobs))
        results.add(f"drain {processes}", name, turn.drain(jobs, processes))
