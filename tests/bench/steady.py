"""Measures e and g: a long run in which as much is enqueued as is worked off."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg

from tests.bench.figures import Figure, Results
from tests.bench.measures import Turn

BACKLOG = 10_000
CHUNK = 5_000
HOLDS = {
    "snapshot": "a REPEATABLE READ snapshot held",
    "write": "a transaction held that has written elsewhere",
    "nothing": "nothing held",
}
BATCHES = {"10": 10, "default": None}
HELD = tuple(
    Figure(f"e {hold} {batch} {part}", f"e: {words}, batch {batch}: {what}", unit)
    for hold, words in HOLDS.items()
    for batch in BATCHES
    for part, what, unit in (
        ("first", "the first tenth", "jobs/s"),
        ("kept", "the last tenth to the first", "ratio"),
        ("jobs", "jobs in all", "jobs"),
    )
)
COSTS = (
    Figure("g server", "g: CPU of the server", "us/job", more_is_better=False),
    Figure("g client", "g: CPU of producer and worker", "us/job", more_is_better=False),
    Figure("g wal", "g: WAL", "bytes/job", more_is_better=False),
    Figure("g live", "g: live rows in all tables at the end", "bytes", more_is_better=False),
    Figure("g dead", "g: dead rows in all tables at the end", "bytes", more_is_better=False),
    Figure("g size", "g: all tables and indexes at the end", "bytes", more_is_better=False),
    Figure("g jobs", "g: jobs in all", "jobs"),
)


@dataclass(frozen=True)
class Steady:
    """When how many jobs had been handled, in seconds from the first one's start."""

    line: list[tuple[float, int]]

    @property
    def jobs(self) -> int:
        return self.line[-1][1]

    def at(self, jobs: float) -> float:
        """When so many had been handled; between two looks, in proportion."""
        for (t0, n0), (t1, n1) in zip(self.line, self.line[1:], strict=False):
            if n1 >= jobs:
                return t0 + (t1 - t0) * (jobs - n0) / (n1 - n0) if n1 > n0 else t1
        return self.line[-1][0]

    def rate(self, start: float, end: float) -> float:
        """Jobs a second between two shares of all that were handled."""
        took = self.at(end * self.jobs) - self.at(start * self.jobs)
        return (end - start) * self.jobs / took


def steady(turn: Turn, jobs: int, *, seconds: float, batch: int | None = None) -> Steady:
    """Work off so many, or what can be in the time, with a backlog that hardly changes."""
    turn.bulk(min(BACKLOG, jobs))
    with turn.workers(batch=batch) as [worker]:
        spent = worker.cpu()
        line = [(0.0, 0)]
        busy = False
        while line[-1][1] < jobs and line[-1][0] < seconds:
            look = worker.ask("handled")
            handled = int(look["jobs"])
            if handled:
                line.append((time.monotonic() - look["first"], handled))
            if busy and turn.producer.answered:
                turn.producer.answer()
                busy = False
            wanted = min(CHUNK, jobs - turn.enqueued)
            if not busy and wanted > 0 and turn.enqueued - handled < BACKLOG:
                turn.begin_bulk(wanted)
                busy = True
            time.sleep(0.05)
        if busy:
            turn.producer.answer(seconds)
        worker.ask("stop")
        turn.spent += worker.cpu() - spent
    return Steady(line)


def held(turn: Turn, results: Results, *, jobs: int, seconds: float, hold: str, batch: str) -> None:
    """Measure e, of one transaction that is held open and one size of batch."""
    name, key = turn.peer.name, f"e {hold} {batch}"
    with _held(turn, hold):
        run = steady(turn, jobs, seconds=seconds, batch=BATCHES[batch])
    first, last = run.rate(0, 0.1), run.rate(0.9, 1)
    results.add(f"{key} first", name, first)
    results.add(f"{key} kept", name, last / first)
    results.add(f"{key} jobs", name, run.jobs)
    results.series.setdefault(key, {})[name] = [(t, float(n)) for t, n in run.line]


def costs(turn: Turn, results: Results, *, jobs: int, seconds: float) -> None:
    """Measure g: what a job costs from enqueue to the end, and what it leaves behind."""
    name, database = turn.peer.name, turn.database
    server, client, wal = database.cpu(), turn.producer.cpu(), database.wal()
    run = steady(turn, jobs, seconds=seconds)
    results.add("g server", name, (database.cpu() - server) / run.jobs * 1e6)
    results.add("g client", name, (turn.producer.cpu() - client + turn.spent) / run.jobs * 1e6)
    results.add("g wal", name, (database.wal() - wal) / run.jobs)
    results.add("g jobs", name, run.jobs)
    database.connection.execute("create extension pgstattuple")
    for part, what in (("live", "tuple_len"), ("dead", "dead_tuple_len")):
        results.add(f"g {part}", name, float(database.ask(_SIZES.format(f"t.{what}"))))
    results.add("g size", name, float(database.ask(_SIZES.format("pg_total_relation_size(c.oid)"))))


_SIZES = """
    select sum({})
      from pg_class as c
      join pg_namespace as n on n.oid = c.relnamespace
     cross join lateral pgstattuple(c.oid) as t
     where c.relkind = 'r' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
"""


@contextlib.contextmanager
def _held(turn: Turn, hold: str) -> Iterator[None]:
    """A transaction in another session of the same database, for the block."""
    with psycopg.connect(turn.database.url, autocommit=True) as connection:
        connection.execute("create table elsewhere (n int)")
        if hold == "snapshot":
            connection.execute("begin isolation level repeatable read")
            connection.execute("select n from elsewhere")
        elif hold == "write":
            connection.execute("begin")
            connection.execute("insert into elsewhere values (1)")
        yield
        connection.execute("rollback")
