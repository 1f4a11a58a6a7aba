"""Measure h: more worker processes, and a crowd of idle ones."""

from __future__ import annotations

import time

from tests.bench.figures import Figure, Results
from tests.bench.measures import Turn

PROCESSES = (1, 2, 4, 8)
IDLE = 50
CALLS = 20
FIGURES = (
    *(Figure(f"h {n}", f"h: drain, {n} processes") for n in PROCESSES),
    Figure("h cpu", f"h: CPU of all, an enqueue with {IDLE} idle", "ms", more_is_better=False),
    Figure("h single 16", f"h: single enqueue, 16 connections, {IDLE} idle"),
)


def growing(turn: Turn, results: Results, *, jobs: int) -> None:
    """The same drain by more and more processes."""
    for processes in PROCESSES:
        turn.bulk(jobs)
        results.add(f"h {processes}", turn.peer.name, turn.drain(jobs, processes))


def crowd(turn: Turn, results: Results, *, idle: int, seconds: float) -> None:
    """What one enqueue costs everybody who sleeps, and what that does to producers."""
    name = turn.peer.name
    with turn.workers(idle) as workers:
        time.sleep(5)

        def spent() -> float:
            own = sum(worker.cpu() for worker in workers)
            return turn.database.cpu() + own + turn.producer.cpu()

        # The same number of pauses without and with an enqueue after each.
        before, began = spent(), time.monotonic()
        turn.producer.ask("paced", first=turn.numbers(CALLS), jobs=CALLS, every=0.2)
        took, busy = time.monotonic() - began, spent() - before
        before = spent()
        time.sleep(took)
        results.add("h cpu", name, (busy - (spent() - before)) / CALLS * 1e3)
        results.add("h single 16", name, turn.single(16, seconds))
