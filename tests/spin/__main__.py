"""`python -m tests.spin`: checks the specifications, and that each broken variant fails."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor

import click
from rich.console import Console
from rich.table import Table

from tests.spin import checker, trace
from tests.spin.report import Report, Unreadable
from tests.spin.specification import Size, Specification, Variant
from tests.spin.specifications import SPECIFICATIONS

STATES = 100_000
"""At least so many in one size of each specification, or it is too small to say much."""

Checks = dict[tuple[Specification, Size], Future[Report]]
Breaks = dict[tuple[Specification, Variant], Future[tuple[Report, str]]]

console = Console(width=140, highlight=False, markup=False)


@click.command()
@click.option("--only", multiple=True, help="A specification's file, or a variant.")
@click.option("--write", is_flag=True, help="Keep the counterexamples found in traces/.")
@click.option("--jobs", type=int, default=os.cpu_count() or 2, help="Searches side by side.")
def main(only: tuple[str, ...], write: bool, jobs: int) -> None:
    if not checker.install():
        sys.exit(checker.MISSING)
    started = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        checks: Checks = {
            (specification, size): pool.submit(checker.check, specification, size)
            for specification in SPECIFICATIONS
            if not only or specification.file in only
            for size in specification.sizes
        }
        breaks: Breaks = {
            (specification, variant): pool.submit(checker.break_, specification, variant)
            for specification in SPECIFICATIONS
            for variant in specification.variants
            if not only or specification.file in only or variant.name in only
        }
    try:
        wrong = [*_judge_sizes(checks), *_judge_variants(breaks, write)]
    except (checker.NotChecked, Unreadable) as error:
        sys.exit(str(error))
    for line in wrong:
        console.print("WRONG", line, soft_wrap=True)
    console.print(
        f"{len(checks)} searches, {len(breaks)} variants, {len(wrong)} wrong; "
        f"{time.monotonic() - started:.0f} s"
    )
    sys.exit(1 if wrong else 0)


def _judge_sizes(checks: Checks) -> list[str]:
    table = Table("specification", "size", "looks for", "states", "transitions", "depth", "s", "MB")
    wrong = []
    for (specification, size), future in checks.items():
        found = future.result()
        table.add_row(
            specification.file,
            size.name,
            "cycles" if size.liveness else "bad states",
            f"{found.states:,}",
            f"{found.transitions:,}",
            str(found.depth),
            f"{found.seconds:.1f}",
            f"{found.megabytes:.0f}",
        )
        if found.errors or found.trouble:
            wrong.append(f"{specification.file}, {size.name}: {found.trouble}")
    for specification in {specification: None for specification, _ in checks}:
        reports = [f.result() for (other, _), f in checks.items() if other is specification]
        if max(report.states for report in reports) < STATES:
            wrong.append(f"{specification.file}: fewer than {STATES:,} states")
        never = frozenset.intersection(*(report.unreached for report in reports))
        wrong += [f"{specification.file}: never reached: {line}" for line in sorted(never)]
    if checks:
        console.print(table)
    return wrong


def _judge_variants(breaks: Breaks, write: bool) -> list[str]:
    table = Table("broken", "a tenure in which …", "breaks", "states", "s")
    wrong = []
    for (specification, variant), future in breaks.items():
        found, readable = future.result()
        kept = specification.trace(variant)
        if not found.errors:
            wrong.append(f"{specification.file} holds with {variant.name}")
        elif write:
            kept.write_text(readable)
        elif not kept.exists():
            wrong.append(f"no trace is kept of {variant.name}: run again with --write")
        table.add_row(
            f"{specification.path.stem} {variant.name}",
            variant.says,
            trace.broken(readable) or "NOTHING",
            f"{found.states:,}",
            f"{found.seconds:.1f}",
        )
    if breaks:
        console.print(table)
    return wrong


if __name__ == "__main__":
    main()
