"""Random calls for as long as you like: python -m tests.fuzz [sql] [lives] [--seconds] [--seed]."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tenure import embedded
from tenure.migrate import upgrade
from tests.contract.backends import Pool
from tests.fuzz.caller import Finding
from tests.fuzz.stage import fuzz
from tests.stateful.lives import Lives
from tests.tools import databases, servers

BATCH = 1000
"""Calls under one seed."""
LIVES = 100
"""Lives under one seed."""
STEPS = 60


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("what", nargs="*", help="sql or lives; both, if neither is given")
    parser.add_argument("--seconds", type=float, default=120, help="for each")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    given = parser.parse_args()
    if unknown := set(given.what) - RUNS.keys():
        parser.error(f"nothing is called {', '.join(unknown)}")
    os.nice(5)
    with server():
        return max(RUNS[what](given.seed, given.seconds) for what in given.what or RUNS)


@contextmanager
def server() -> Iterator[None]:
    """The one of TENURE_TEST_DSN, or one for as long as the block lasts."""
    if "TENURE_TEST_DSN" in os.environ:
        yield
        return
    with closing(servers.temporary({**embedded.FAST, "max_prepared_transactions": "8"})) as own:
        os.environ["TENURE_TEST_DSN"] = own.start().url()
        yield


def seeds(what: str, seed: int, seconds: float) -> Iterator[int]:
    """One after the other, until the time is over."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        print(f"{what}: seed {seed}", flush=True)
        yield seed
        seed += 1


def sql(seed: int, seconds: float) -> int:
    """Calls of the installed functions; every one that goes wrong is printed as psql takes it."""
    found: dict[str, Finding] = {}
    answers: Counter[str] = Counter()
    with databases.database(databases.new_name("fuzz")) as name:
        upgrade(databases.url(name))
        for number in seeds("sql", seed, seconds):
            with fuzz(databases.url(name), number) as calls:
                calls.run(BATCH)
                answers += calls.answers
                for finding in calls.findings:
                    if finding.what not in found:
                        print(finding, flush=True)
                    found.setdefault(finding.what, finding)
    print(f"sql: {answers.total()} calls, {len(found)} kinds of wrong ones; {dict(answers)}")
    return 1 if found else 0


def lives(seed: int, seconds: float) -> int:
    """Lives of 60 steps, everything compared after each; raises at a disagreement."""
    with (
        databases.database(databases.new_name("lives")) as name,
        tempfile.TemporaryDirectory(prefix="tenure-lives-") as folder,
    ):
        upgrade(databases.url(name))
        databases.load_test_clock(databases.url(name))
        with closing(Pool(databases.url(name))) as pool:
            runs = Lives(pool, Path(folder), thorough=True)
            for number in seeds("lives", seed, seconds):
                runs.run(examples=LIVES, steps=STEPS, random_seed=number)
    print(f"lives: {runs.count} lives, no disagreement")
    return 0


RUNS = {"sql": sql, "lives": lives}


if __name__ == "__main__":
    sys.exit(main())
