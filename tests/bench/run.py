"""Everything that is measured, of everybody: python -m tests.bench.run --help.

Each measure has a file of results, so that one can be measured anew; tests.bench.page puts them
together.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import backlog, basic, catalogue, features, scale, sqlite, steady
from tests.bench.catalogue import Installed, Peer
from tests.bench.environments import PLACE
from tests.bench.figures import Figure, Results, plain, rows
from tests.bench.machine import machine
from tests.bench.measures import Turn, turn
from tests.bench.server import started

Part = Callable[[Turn, Results], None]
Begin = Callable[[Peer, Installed], AbstractContextManager[Turn]]


@dataclass(frozen=True)
class Measure:
    """What is measured together, and by how many turns of each peer."""

    name: str
    figures: Sequence[Figure]
    parts: Sequence[Part]
    rounds: int = 1
    peers: Sequence[Peer] = catalogue.PEERS
    begin: Begin | None = None
    """None: on the server."""


@dataclass(frozen=True)
class Sizes:
    basic: basic.Sizes = basic.FULL
    steady: int = 300_000
    steady_ours: int = 500_000
    costs: int = 1_000_000
    seconds: float = 90.0
    backlog: int = 1_000_000
    idle: int = 50
    features: int = 50_000
    sqlite: int = 10_000
    batches: Sequence[str] = field(default_factory=lambda: tuple(steady.BATCHES))


SHORT = Sizes(basic.SHORT, 200_000, 200_000, 500_000, 8.0, 200_000, 50, 3_000, 3_000)
TINY = Sizes(basic.TINY, 2_000, 2_000, 2_000, 20.0, 6_000, 3, 500, 300)


def measures(sizes: Sizes) -> Iterator[Measure]:
    """a and c, b and d, e to j."""
    part = functools.partial
    few, compared = sizes.basic, [peer for peer in catalogue.PEERS if peer.counts]
    yield Measure("ac", basic.FIGURES, [part(basic.in_bulk, sizes=few)], rounds=few.rounds)
    yield Measure("bd", basic.FIGURES, [part(basic.singly, sizes=few)], rounds=min(3, few.rounds))
    held = [
        part(_held, sizes=sizes, hold=hold, batch=batch)
        for batch in sizes.batches
        for hold in steady.HOLDS
    ]
    yield Measure("e", steady.HELD, held, peers=compared)
    many = sizes.backlog
    behind = [part(backlog.backlog, many=many), part(backlog.behind, many=many)]
    yield Measure("f", backlog.FIGURES, behind, peers=compared)
    costs = part(steady.costs, jobs=sizes.costs, seconds=2 * sizes.seconds)
    yield Measure("g", steady.COSTS, [costs], peers=compared)
    crowd = part(scale.crowd, idle=sizes.idle, seconds=few.seconds)
    growing = [part(scale.growing, jobs=few.jobs), crowd]
    yield Measure("h", scale.FIGURES, growing, peers=compared[:4])
    ours = [catalogue.TENURE]
    feature = part(features.features, jobs=sizes.features)
    yield Measure("i", features.FIGURES, [feature], rounds=few.rounds, peers=ours)
    on_a_file = part(sqlite.on_a_file, jobs=sizes.sqlite, latencies=few.latencies)
    yield Measure(
        "j", sqlite.FIGURES, [on_a_file], min(3, few.rounds), catalogue.SQLITE, sqlite.file_turn
    )


def run(measure: Measure, begin: Begin, only: Sequence[str], to: Path, said: str) -> Results:
    """All turns of a measure, of sizes that are `said`; on disk after each part."""
    results = Results(
        machine=machine() | {"sizes": said},
        shown=[peer.name for peer in measure.peers if not peer.counts],
    )
    peers = [peer for peer in measure.peers if not only or peer.name in only]
    installed = basic.install(peers, results)
    for part in measure.parts:
        basic.interleave(
            begin,
            peers,
            installed,
            results,
            _filling(results, part),
            rounds=measure.rounds,
        )
        results.save(to / f"{measure.name}.json")
    return results


def _held(turn: Turn, results: Results, *, sizes: Sizes, hold: str, batch: str) -> None:
    jobs = sizes.steady_ours if turn.peer is catalogue.TENURE else sizes.steady
    steady.held(turn, results, jobs=jobs, seconds=sizes.seconds, hold=hold, batch=batch)


def _filling(results: Results, part: Part) -> Callable[[Turn], None]:
    return lambda turn: part(turn, results)


def main() -> int:
    known = {measure.name: measure for measure in measures(Sizes())}
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--only", nargs="+", choices=known, help="these measures", default=[])
    arguments.add_argument("--peers", nargs="+", help="these peers and tenure", default=[])
    sizes = arguments.add_mutually_exclusive_group()
    sizes.add_argument("--short", action="store_true", help="in half an hour, less exactly")
    sizes.add_argument("--tiny", action="store_true", help="too little to mean anything")
    given = arguments.parse_args()
    chosen = TINY if given.tiny else SHORT if given.short else Sizes()
    said = "tiny" if given.tiny else "short" if given.short else "full"
    only = [*given.peers, catalogue.TENURE.name] if given.peers else []
    to = PLACE / ("tiny" if given.tiny else "results")
    with started() as server:
        on_the_server = functools.partial(turn, server)
        for measure in measures(chosen):
            if given.only and measure.name not in given.only:
                continue
            results = run(measure, measure.begin or on_the_server, only, to, said)
            print(f"\n{measure.name}\n{plain(rows(results, measure.figures))}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
