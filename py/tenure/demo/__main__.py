"""The command `python -m tenure.demo`."""

from __future__ import annotations

import contextlib
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console

from tenure import embedded
from tenure.app import Tenure
from tenure.cli import run
from tenure.cli_output import print_table
from tenure.demo.crew import Crew, NotAsArranged
from tenure.demo.display import Display
from tenure.demo.report import Figures, broken_promises, figures
from tenure.demo.scenario import NAMED, Scenario
from tenure.postgres_store import PostgresStore

SCHEMA = "tenure_demo"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--dsn", help="Work there, and leave it there.  [default: a temporary SQLite file]")
@click.option("--embedded", "on_embedded", is_flag=True, help="Work on a PostgreSQL of its own.")
@click.option(
    "--files",
    type=click.IntRange(min=len(NAMED) + 1),
    help="Analyse only so many files.  [default: the whole standard library]",
)
def demo(dsn: str | None, on_embedded: bool, files: int | None) -> int:
    """Analyse the standard library through a queue, with two workers and some accidents."""
    if dsn and on_embedded:
        raise click.UsageError("--dsn and --embedded exclude each other")
    began = time.monotonic()
    with _folder() as folder, _target(dsn, on_embedded, folder) as target:
        queue = f"demo-{secrets.token_hex(4)}"
        with Tenure(target, schema=SCHEMA) as app:
            click.echo(_where(app, app.install(), dsn is not None, queue))
            try:
                with Crew(folder, target, SCHEMA, queue) as crew, Display(Console()) as display:
                    story = Scenario(app, crew, queue, display).play(files)
            except NotAsArranged as error:
                raise click.ClickException(str(error)) from None
            records = app.store.records()
            found = figures(records, queue, crew.heard)
            _print(found, time.monotonic() - began)
            broken = broken_promises(found, story, records, crew.heard)
    for promise in broken:
        click.echo(f"NOT SO: {promise}", err=True)
    return 1 if broken else 0


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tenure-demo-") as folder:
        yield Path(folder)


@contextlib.contextmanager
def _target(dsn: str | None, on_embedded: bool, folder: Path) -> Iterator[str]:
    if on_embedded:
        with embedded.temporary(embedded.DURABLE) as server:
            yield server.url()
    else:
        yield dsn or str(folder / "demo.db")


def _where(app: Tenure, version: str, stays: bool, queue: str) -> str:
    if isinstance(app.store, PostgresStore):
        place = f"PostgreSQL, in the schema {SCHEMA}, which migrate brought to revision {version}"
    else:
        place = f"SQLite, in {'the' if stays else 'a temporary'} file {app.store.path}"
    return f"{place}; queue {queue}"


def _print(found: Figures, seconds: float) -> None:
    lines = {
        "enqueued": found.enqueued,
        "completed": found.completed,
        "cancelled": found.cancelled,
        "attempts": found.attempts,
        "leases recovered": found.recovered,
        "sealed jobs healed without running again": found.healed,
        "completions accepted twice": found.twice,
        "stale writes refused": found.refused,
        "sources that do not parse": found.unparsed,
        "seconds": f"{seconds:.1f}",
    }
    click.echo()
    for name, figure in lines.items():
        click.echo(f"{name:42}{figure:>8}")
    click.echo(f"\nthe {len(found.largest)} largest modules")
    print_table(
        ("module", "lines", "classes", "functions", "imports"),
        [
            (
                facts["module"],
                facts["lines"],
                facts["classes"],
                facts["functions"],
                len(facts["imports"] or ()),
            )
            for facts in found.largest
        ],
    )


def _terminated(number: int, _: object) -> None:
    # Raised in the main thread, so that workers, server and files are cleared away.
    sys.exit(128 + number)


def main() -> int:
    signal.signal(signal.SIGTERM, _terminated)
    return run(demo, None, "tenure.demo")


if __name__ == "__main__":
    sys.exit(main())
