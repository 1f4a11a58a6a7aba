"""The command that adds a job."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import Any

import click

from tenure.cli_options import checked, duration, moment, read_json, store_options
from tenure.cli_output import json_option, one_line, print_json
from tenure.errors import InvalidArgument
from tenure.postgres_store import PostgresStore
from tenure.sqlite_store import SqliteStore


@click.command()
@click.argument("kind")
@click.argument("payload", required=False)
@click.option("--queue", default="default", show_default=True, help="Where it waits.")
@click.option("--priority", type=int, default=5, show_default=True, help="0 first, 9 last.")
@click.option("--delay", type=duration, help="Due so long from now: 90s, 5m, 2h.")
@click.option("--run-at", type=moment, help="Due then: 2030-01-31T08:00:00Z.")
@click.option(
    "--max-attempts", type=int, default=5, show_default=True, help="How often it may be started."
)
@click.option("--dedup-key", help="Add nothing while a live job of the queue has this key.")
@click.option("--timeout", type=duration, help="The longest that one attempt may take.")
@click.option("--retry-base", type=duration, help="The first backoff.  [default: 5s]")
@click.option("--retry-cap", type=duration, help="The longest backoff.  [default: 1h]")
@click.option("--meta", help="JSON for people and tools, which no worker needs.")
@json_option
@store_options
def enqueue(
    store: PostgresStore | SqliteStore,
    kind: str,
    payload: str | None,
    queue: str,
    meta: str | None,
    as_json: bool,
    priority: int,
    delay: timedelta | None,
    run_at: datetime | None,
    max_attempts: int,
    dedup_key: str | None,
    timeout: timedelta | None,
    retry_base: timedelta | None,
    retry_cap: timedelta | None,
) -> None:
    """Add a job.

    KIND says which handler does it; PAYLOAD is JSON, and - reads it from standard input.
    """
    value = _payload(payload)
    plane = checked(store).control_plane()
    try:
        answer = plane.enqueue(
            queue,
            kind,
            value,
            priority=priority,
            run_at=run_at,
            delay=delay,
            max_attempts=max_attempts,
            dedup_key=dedup_key,
            timeout=timeout,
            retry_base=retry_base,
            retry_cap=retry_cap,
            meta=None if meta is None else read_json(meta, "meta"),
        )
    finally:
        plane.close()
    if as_json:
        print_json(answer)
    elif answer.created:
        click.echo(f"job {answer.job_id} is queued in {one_line(queue)}")
    else:
        click.echo(f"job {answer.job_id} is live and has that dedup key; nothing was added")


def _payload(text: str | None) -> Any:
    if text == "-":
        try:
            text = sys.stdin.buffer.read().decode()
        except UnicodeDecodeError as error:
            raise InvalidArgument(f"payload is not UTF-8 at byte {error.start}") from None
    return None if text is None else read_json(text, "payload")
