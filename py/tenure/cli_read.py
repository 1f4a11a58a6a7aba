"""The commands that only look."""

from __future__ import annotations

import click

from tenure.cli_options import checked, store_options
from tenure.cli_output import cell, json_option, plain, print_json, print_table, printable
from tenure.errors import JobUnknown
from tenure.postgres_store import PostgresStore
from tenure.records import MAX_RECORDS, SHADES, AttemptRecord, JobRecord
from tenure.sqlite_store import SqliteStore
from tenure.values import JobStatus


@click.command()
@click.option("--queue", help="Only this queue.")
@click.option(
    "--status",
    type=click.Choice([*map(str, JobStatus), *SHADES]),
    help="Only these; scheduled and retrying are kinds of queued.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_RECORDS),
    default=20,
    show_default=True,
    help="The latest so many.",
)
@json_option
@store_options
def jobs(
    store: PostgresStore | SqliteStore,
    queue: str | None,
    status: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List jobs, live or finished, the newest first."""
    found = checked(store).records().jobs(queue=queue, status=status, limit=limit)
    if as_json:
        print_json(found)
        return
    print_table(
        ("id", "queue", "kind", "status", "attempt", "due", "worker", "last error"),
        [
            (
                job.job_id,
                job.queue,
                job.kind,
                _standing(job),
                f"{job.attempt}/{job.max_attempts}",
                job.next_attempt_at if job.status is JobStatus.QUEUED else None,
                job.worker_id if job.status is JobStatus.RUNNING else None,
                job.last_error,
            )
            for job in found
        ],
    )


@click.command()
@click.argument("job_id", metavar="ID", type=int)
@json_option
@store_options
def show(store: PostgresStore | SqliteStore, job_id: int, as_json: bool) -> None:
    """Show one job, with the attempts that did not complete it."""
    records = checked(store).records()
    job = records.job(job_id)
    if job is None:
        raise JobUnknown(
            f"job {job_id} is unknown",
            hint="check the id; finished jobs are kept for a limited time",
        )
    attempts = records.attempts(job_id)
    if as_json:
        print_json(plain(job) | {"attempts": plain(attempts)})
        return
    fields = {name: value for name in plain(job) if (value := getattr(job, name)) is not None}
    width = max(map(len, fields))
    for name, value in fields.items():
        click.echo(f"{name:{width}}  {cell(value)}")
    if attempts:
        click.echo()
        _print_attempts(attempts)


@click.command()
@json_option
@store_options
def queues(store: PostgresStore | SqliteStore, as_json: bool) -> None:
    """List the queues, and how many live jobs each has."""
    found = checked(store).records().queues()
    if as_json:
        print_json(found)
        return
    print_table(
        ("queue", "queued", "scheduled", "retrying", "running", "oldest due", "paused since"),
        [
            (
                queue.queue,
                queue.queued,
                queue.scheduled,
                queue.retrying,
                queue.running,
                queue.oldest_due_at,
                queue.paused_at,
            )
            for queue in found
        ],
    )


def _standing(job: JobRecord) -> str:
    """The status, with what else decides about a running job."""
    if job.status is not JobStatus.RUNNING:
        return job.shade
    notes = [
        note
        for note, holds in (("sealed", job.sealed_at), ("cancel requested", job.cancel_requested))
        if holds
    ]
    return f"running ({', '.join(notes)})" if notes else "running"


def _print_attempts(attempts: list[AttemptRecord]) -> None:
    print_table(
        ("attempt", "token", "outcome", "by", "started", "ended", "worker", "error"),
        [
            (
                attempt.attempt,
                attempt.token,
                attempt.outcome,
                attempt.verb,
                attempt.started_at,
                attempt.ended_at,
                attempt.worker_id,
                ": ".join(part for part in (attempt.error_type, attempt.message) if part) or None,
            )
            for attempt in attempts
        ],
    )
    if traceback := attempts[-1].traceback:
        click.echo(f"\n{printable(traceback.rstrip())}")
