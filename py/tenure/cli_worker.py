"""The command that works."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta

import click

from tenure.cli_app import load_app
from tenure.cli_options import duration, schema_option
from tenure.control_plane import LEASE_FOR
from tenure.runner import WorkerRunner
from tenure.runner_options import GRACE
from tenure.store import open_store

_LEVELS = ("debug", "info", "warning", "error")


@click.command()
@click.argument("app_name", metavar="MODULE:APP")
@click.option(
    "--queue",
    "queues",
    multiple=True,
    metavar="NAME[=SLOTS]",
    help="Serve this queue, with so many slots of its own; may be repeated, in order of urgency."
    "  [default: the queues of the app's tasks]",
)
@click.option(
    "--slots",
    type=int,
    default=10,
    show_default=True,
    help="How many jobs run at once, over all queues without slots of their own.",
)
@click.option("--drain", is_flag=True, help="End once nothing is due and nothing runs.")
@click.option(
    "--lease-for",
    type=duration,
    default=LEASE_FOR,
    help="How soon others may have the jobs of a dead worker.  [default: 30s]",
)
@click.option(
    "--grace",
    type=duration,
    default=GRACE,
    help="How long a stop waits for running jobs.  [default: 30s]",
)
@click.option(
    "--log-level",
    type=click.Choice(_LEVELS),
    default="info",
    show_default=True,
    help="Log this and what is graver.",
)
@click.option("--dsn", help="Work there, not where the app says.")
@schema_option
def worker(
    app_name: str,
    queues: Sequence[str],
    slots: int,
    drain: bool,
    lease_for: timedelta,
    grace: timedelta,
    log_level: str,
    dsn: str | None,
    schema: str,
) -> None:
    """Work off the queues of an app.

    APP is a Tenure in MODULE: tenure worker shop.jobs:app. Ends after SIGTERM or Ctrl-C, once
    what runs has ended; a second one ends it at once. Logs go to standard error.
    """
    logging.basicConfig(
        level=log_level.upper(), format="%(asctime)s %(levelname)-7s %(name)s: %(message)s"
    )
    app = load_app(app_name)
    store = app.store if dsn is None else open_store(dsn, schema=schema)
    runner = WorkerRunner(
        store,
        app.tasks,
        queues=served(queues) or app.tasks.queues or ["default"],
        slots=slots,
        lease_for=lease_for,
        grace=grace,
        hooks=app.hooks,
    )
    store.check()
    if drain:
        runner.run_until_idle()
    else:
        runner.run_forever()
    app.close()


def served(queues: Sequence[str]) -> Sequence[str] | Mapping[str, int]:
    """The queues in their order; a mapping when each has slots of its own."""
    own = {}
    for text in queues:
        name, equals, count = text.rpartition("=")
        if equals and count.isdecimal():
            own[name] = int(count)
    if own and len(own) < len(queues):
        raise click.UsageError("either every --queue has slots of its own, or none has")
    return own or queues
