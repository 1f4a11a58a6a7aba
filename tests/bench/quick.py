"""How fast tenure and the fastest peers are, in three minutes: python -m tests.bench.quick."""

from __future__ import annotations

import argparse
import functools
import sys
import time

from tests.bench import basic, catalogue
from tests.bench.environments import PLACE
from tests.bench.figures import Results, plain, rows
from tests.bench.machine import machine
from tests.bench.measures import turn
from tests.bench.server import started

SECONDS = 165
"""What may begin in this time is a further round."""
BEST = ("graphile-worker", "pgmq")
"""Without one of them there is nothing to be compared with."""


def ended(results: Results) -> int:
    """Say what was measured; the last line is the ratio. The program's exit code."""
    for name, about in results.about.items():
        print(f"{name} {about['version']}: {about['settings']}")
    print(plain(rows(results, basic.FIGURES)))
    ratio = results.ratio(basic.DRAIN)
    if ratio is None or not any(results.of(basic.DRAIN.key, name) for name in BEST):
        print(f"no drain ratio: neither of {' and '.join(BEST)} was measured", file=sys.stderr)
        return 1
    print(f"drain ratio: {ratio:.2f}")
    return 0


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tiny", action="store_true", help="too little to mean anything")
    sizes = basic.TINY if arguments.parse_args().tiny else basic.QUICK
    results = Results(machine=machine(), shown=[catalogue.CEILING.name])
    peers = catalogue.QUICK
    installed = basic.install(peers, results)
    if not any(name in installed for name in BEST):
        print(f"neither of {' and '.join(BEST)} could be installed", file=sys.stderr)
        return 1
    until = time.monotonic() + (0 if sizes is basic.TINY else SECONDS)
    with started() as server:
        begin = functools.partial(turn, server)
        basic.interleave(
            begin, peers, installed, results, lambda t: basic.singly(t, results, sizes), rounds=1
        )
        basic.interleave(
            begin,
            peers,
            installed,
            results,
            lambda t: basic.in_bulk(t, results, sizes),
            rounds=sizes.rounds,
            until=until,
        )
    results.save(PLACE / ("tiny" if sizes is basic.TINY else "results") / "quick.json")
    return ended(results)


if __name__ == "__main__":
    sys.exit(main())
