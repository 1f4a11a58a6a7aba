"""Measure f: a few jobs in front of many, or behind many that are not due."""

from __future__ import annotations

import time

from tests.bench.adapter import AdapterFailed
from tests.bench.figures import Figure, Results
from tests.bench.measures import Turn, wait_until_handled

JOBS = 5_000
HOUR = 3600.0
LONGEST = 240.0
"""Seconds that enqueueing the backlog may take."""
FIGURES = (
    Figure("f alone", "f: 5k jobs alone"),
    Figure("f front", "f: 5k jobs in front of the backlog"),
    Figure("f front kept", "f: in front of the backlog, to alone", "ratio"),
    Figure("f behind", "f: 5k jobs behind delayed ones of higher priority"),
    Figure("f behind kept", "f: behind delayed ones of higher priority, to alone", "ratio"),
    Figure("f backlog", "f: the backlog", "jobs"),
)


def backlog(turn: Turn, results: Results, *, many: int) -> None:
    """The first jobs of a queue, alone and then in front of many."""
    name = turn.peer.name
    turn.bulk(JOBS)
    alone = _first(turn)
    results.add("f alone", name, alone)
    turn.bulk(JOBS)
    _check(turn, many)
    turn.bulk(many)
    results.add("f backlog", name, many)
    turn.database.connection.execute("vacuum analyze")
    front = _first(turn)
    results.add("f front", name, front)
    results.add("f front kept", name, front / alone)


def behind(turn: Turn, results: Results, *, many: int) -> None:
    """A few jobs, with many of a higher priority that are not due yet."""
    name = turn.peer.name
    _check(turn, many)
    alone = _first(turn)
    turn.bulk(many, urgent=True, delay=HOUR)
    turn.bulk(JOBS)
    turn.database.connection.execute("vacuum analyze")
    late = _first(turn)
    results.add("f behind", name, late)
    results.add("f behind kept", name, late / alone)


def _check(turn: Turn, many: int) -> None:
    """Enqueue a few, and see whether so many can be had in time."""
    rate = turn.bulk(JOBS)
    if many / rate > LONGEST:
        raise AdapterFailed(f"enqueues {rate:,.0f} jobs/s, too few for a backlog of {many:,}")


def _first(turn: Turn) -> float:
    """How fast a new worker handles its first jobs; it is then stopped."""
    with turn.workers() as [worker]:
        wait_until_handled([worker], JOBS)
        worker.ask("stop")
        started: list[float] = sorted(t for _, t in worker.ask("starts")["starts"])
    time.sleep(0.5)
    return JOBS / (started[JOBS - 1] - started[0])
