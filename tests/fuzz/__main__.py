"""Random calls for as long as you like: python -m tests.fuzz [lives|sql] [--seconds] [--seed]."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tenure import embedded
from tenure.migrate import upgrade
from tests.contract.backends import Pool
from tests.stateful.lives import Lives
from tests.tools import databases


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("what", choices=("lives", "sql"), nargs="*", default=["sql", "lives"])
    parser.add_argument("--seconds", type=float, default=120, help="for each")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    given = parser.parse_args()
    os.nice(5)
    with server():
        for what in given.what or ["sql", "lives"]:
            RUNS[what](given.seed, given.seconds)
    return 0


@contextmanager
def server() -> Iterator[None]:
    """The one of TENURE_TEST_DSN, or one for as long as the block lasts."""
    if "TENURE_TEST_DSN" in os.environ:
        yield
        return
    with closing(embedded.temporary({**embedded.FAST, "max_prepared_transactions": "8"})) as own:
        os.environ["TENURE_TEST_DSN"] = own.start().url()
        yield


def lives(seed: int, seconds: float) -> None:
    """Lives of 60 steps, everything compared after each."""
    until = time.monotonic() + seconds
    batch, examples = 0, 100
    with (
        databases.database(databases.new_name("lives")) as name,
        tempfile.TemporaryDirectory(prefix="tenure-lives-") as folder,
    ):
        upgrade(databases.url(name))
        databases.load_test_clock(databases.url(name))
        with closing(Pool(databases.url(name))) as pool:
            runs = Lives(pool, Path(folder), thorough=True)
            while time.monotonic() < until:
                print(f"lives: seed {seed + batch}, {runs.count} lives so far", flush=True)
                runs.run(examples=examples, steps=60, random_seed=seed + batch)
                batch += 1
    print(f"lives: {runs.count} lives, no disagreement")


RUNS = {"lives": lives}


if __name__ == "__main__":
    sys.exit(main())
