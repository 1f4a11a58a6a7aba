"""All interleavings: python -m tests.schedules [--backend B] [--sample N] [--replay F:ORDER]."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tenure.migrate import upgrade
from tests.schedules import crew, house, readable, report
from tests.schedules.families import BY_NAME
from tests.schedules.perform import Theatre
from tests.tools import databases, servers

PROMISED = 20_000
"""Distinct schedules for each backend."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.schedules", description=__doc__)
    parser.add_argument("--backend", choices=("postgres", "sqlite", "both"), default="both")
    parser.add_argument(
        "--family", action="append", default=[], choices=sorted(BY_NAME), metavar="NAME"
    )
    parser.add_argument("--sample", type=int, help="schedules for each backend; all if not given")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--replay", metavar="FAMILY:ORDER", help="one schedule, step by step")
    given = parser.parse_args()
    if given.replay and given.replay.partition(":")[0] not in BY_NAME:
        parser.error(f"there is no such family: {given.replay}")
    backends = ["postgres", "sqlite"] if given.backend == "both" else [given.backend]
    with template(needed="postgres" in backends) as name:
        if given.replay:
            return replay(given.replay, backends, name)
        return run(given, backends, name)


@contextmanager
def template(*, needed: bool) -> Iterator[str]:
    """A database to clone, on the server of TENURE_TEST_DSN or one of its own."""
    with ExitStack() as stack:
        if needed:
            if "TENURE_TEST_DSN" not in os.environ:
                server = stack.enter_context(servers.temporary())
                os.environ["TENURE_TEST_DSN"] = server.url()
            name = stack.enter_context(databases.database(databases.new_name("migrated")))
            upgrade(databases.url(name))
            databases.load_test_clock(databases.url(name))
            yield name
        else:
            yield ""


def replay(what: str, backends: list[str], name: str) -> int:
    family_name, _, order = what.partition(":")
    family = BY_NAME[family_name]
    wrong = False
    for kind in backends:
        if kind not in family.backends:
            continue
        with house.opened(kind, name) as backend:
            done = Theatre(backend).perform(family, order)
        print(f"{kind}\n{readable.failure(done, kind)}\n")
        wrong = wrong or bool(done.violations)
    return int(wrong)


def run(given: argparse.Namespace, backends: list[str], name: str) -> int:
    which = crew.tasks(backends, given.family, sample=given.sample, seed=given.seed)
    how = "all" if given.sample is None else f"{given.sample} of each backend, seed {given.seed}"
    print(f"{len(which)} families of schedules, {how}", flush=True)
    started = time.monotonic()
    results = []
    for counts in crew.perform(which, name, given.processes):
        results.append(counts)
        if sys.stderr.isatty():
            print(f"{len(results)} of {len(which)}", end="\r", file=sys.stderr, flush=True)
        for failure in counts.failures:
            print(f"\n{failure}", flush=True)
    print("\n".join(report.table(results, BY_NAME)))
    totals = Counter[str]()
    for counts in results:
        totals[counts.backend] += counts.schedules
    violations = sum(counts.violations for counts in results)
    seconds = time.monotonic() - started
    print(f"\n{totals.total():,} distinct schedules in {seconds:.0f} s, {violations} violations")
    everything = given.sample is None and not given.family
    if everything and not violations and min(totals.values()) < PROMISED:
        print(f"fewer than {PROMISED:,} schedules for a backend")
        return 1
    return int(violations > 0)


if __name__ == "__main__":
    sys.exit(main())
