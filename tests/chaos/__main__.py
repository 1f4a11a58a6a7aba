"""The soak: python -m tests.chaos [--backend postgres|sqlite] [--seconds 180] [--jobs 20000]."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

from tests.chaos.soak import Plan, soak

SHOWN = 50
"""Violations that are printed; the rest is counted."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--backend", choices=("postgres", "sqlite"), default="postgres")
    parser.add_argument("--seconds", type=float, default=180, help="of faults")
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--drain", type=float, default=300, help="seconds, after the faults")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    given = parser.parse_args()
    os.nice(5)
    print(f"{given.backend}, {given.jobs} jobs, {given.seconds:g} s, seed {given.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="tenure-soak-"))
    report = soak(
        Plan(
            backend=given.backend,
            jobs=given.jobs,
            seconds=given.seconds,
            drain=given.drain,
            poison=max(1, given.jobs // 1_000),
            crashes=2 if given.backend == "postgres" else 0,
            seed=given.seed,
        ),
        folder,
        lambda line: print(line, flush=True),
    )
    for name, number in report.figures.items():
        print(f"{name:<36}{number:>9,}")
    if not report.violations:
        shutil.rmtree(folder)
        print("no violation")
        return 0
    for violation in report.violations[:SHOWN]:
        print(violation)
    print(f"{len(report.violations)} violations; the journals are in {folder}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
