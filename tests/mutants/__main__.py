"""`python -m tests.mutants`: makes tenure wrong in one place at a time; some test must notice."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.table import Table

from tenure import embedded
from tenure.migrate import upgrade
from tests.mutants.equivalents import EQUIVALENTS
from tests.mutants.found import predicates, variants
from tests.mutants.hunt import TESTS, Hunt, Result
from tests.mutants.killers import Killers
from tests.mutants.mutant import Mutant
from tests.mutants.pool import Pool
from tests.mutants.trial import import_tests
from tests.tools import databases, servers

console = Console(width=160, highlight=False, markup=False)


@click.command()
@click.option("--only", multiple=True, help="A function, a statement's module, or part of a key.")
@click.option("--sample", type=int, help="So many mutants, chosen at random.")
@click.option("--seed", type=int, default=0, help="Another seed is another sample.")
@click.option("--list", "list_only", is_flag=True, help="Print the mutants, run nothing.")
@click.option("--jobs", type=int, default=os.cpu_count() or 2, help="Trials side by side.")
@click.option("--all-tests", is_flag=True, help="Run all tests against the equivalents too.")
@click.option("--tests", multiple=True, help="Where to look for a test that notices.")
@click.option("--slow", is_flag=True, help="Try the slow tests on what no other notices.")
def main(
    only: tuple[str, ...],
    sample: int | None,
    seed: int,
    list_only: bool,
    jobs: int,
    all_tests: bool,
    tests: tuple[str, ...],
    slow: bool,
) -> None:
    everything = [*predicates(), *variants()]
    unknown = EQUIVALENTS.keys() - {mutant.key for mutant in everything}
    chosen = [m for m in everything if not only or any(_is(m, word) for word in only)]
    if sample is not None:
        chosen = random.Random(seed).sample(chosen, min(sample, len(chosen)))
    if list_only:
        for mutant in chosen:
            console.print(mutant.key, soft_wrap=True)
        return

    # What was learned is kept, however this ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    killers = Killers()
    started = time.monotonic()
    equivalent = [m for m in chosen if m.key in EQUIVALENTS]
    results: list[Result] = []
    wrong = []
    import_tests({folder for folders in TESTS.values() for folder in folders})
    with _template() as template:
        hunt = Hunt(Pool(template, jobs), killers, _print, tests=tests, slow=slow)
        try:
            wanted = [m for m in chosen if m.key not in EQUIVALENTS]
            # A trial may break on a busy machine: what survives, survives twice.
            for _ in range(2):
                results = [r for r in results if r.killed_by is not None]
                for result in hunt.results(wanted):
                    results.append(result)
                    _say(result)
                wanted = [r.mutant for r in results if r.killed_by is None]
        finally:
            killers.save(everything)
        for result in hunt.unkilled(equivalent, all_tests=all_tests):
            if result.killed_by or result.trouble:
                wrong.append(result)
                _say(result)

    console.print(_table(sorted(results, key=lambda r: r.mutant.key)))
    survivors = [r for r in results if r.killed_by is None]
    for key in sorted(unknown):
        console.print(f"an equivalent that there is not: {key}", soft_wrap=True)
    for result in wrong:
        console.print(f"no equivalent, {result.killed_by} notices: {result.mutant.key}")
    for result in survivors:
        console.print(f"SURVIVES {result.mutant.key} {result.trouble}", soft_wrap=True)
    console.print(
        f"{len(chosen)} mutants: {len(results) - len(survivors)} killed, {len(survivors)} survive, "
        f"{len(equivalent)} equivalent; {time.monotonic() - started:.0f} s"
    )
    sys.exit(1 if survivors or wrong or unknown or hunt.broken else 0)


def _is(mutant: Mutant, word: str) -> bool:
    return word in (mutant.kind, mutant.place, mutant.place.partition(".")[0]) or word in mutant.key


@contextmanager
def _template() -> Iterator[str]:
    """A server, unless TENURE_TEST_DSN names one, with a database in which tenure is installed."""
    with _server(), databases.database(databases.new_name("unchanged")) as name:
        upgrade(databases.url(name))
        yield name


@contextmanager
def _server() -> Iterator[None]:
    if "TENURE_TEST_DSN" in os.environ:
        yield
        return
    # A mutant may never leave a loop.
    settings = {**embedded.FAST, "statement_timeout": "8s", "max_connections": "200"}
    with servers.temporary(settings) as server:
        os.environ["TENURE_TEST_DSN"] = server.url()
        yield


def _print(line: str) -> None:
    console.print(line, soft_wrap=True)


def _say(result: Result) -> None:
    console.print(
        f"{result.seconds:6.1f} s  {result.mutant.key}  by {result.killed_by or 'NO TEST'}",
        soft_wrap=True,
    )
    if result.trouble:
        console.print(result.trouble)


def _table(results: list[Result]) -> Table:
    table = Table("where", "without", "killed by", "seconds")
    for result in results:
        killed_by = result.killed_by or f"NOTHING {result.trouble}"
        table.add_row(
            f"{result.mutant.kind} {result.mutant.place}",
            result.mutant.change,
            killed_by.partition("::")[2] or killed_by,
            f"{result.seconds:.1f}",
        )
    return table


if __name__ == "__main__":
    main()
