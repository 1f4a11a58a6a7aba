"""The commands of an operator: what was answered is said in words, a refusal with exit code 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import click

from tenure.cli_options import checked, store_options
from tenure.cli_output import json_option, one_line, print_json
from tenure.control_plane import ControlPlane
from tenure.identity import new_worker_id
from tenure.limits import MAX_LAPSED
from tenure.postgres_store import PostgresStore
from tenure.sqlite_store import SqliteStore
from tenure.values import JobAnswer, JobStatus, QueueAnswer, Verdict

T = TypeVar("T")

_DONE = (Verdict.OK, Verdict.ALREADY)


@click.command()
@click.argument("job_id", metavar="ID", type=int)
@json_option
@store_options
def cancel(store: PostgresStore | SqliteStore, job_id: int, as_json: bool) -> int:
    """Cancel a queued job, or ask a running one to stop."""
    answer = _ask(store, lambda plane: plane.cancel(job_id))
    if answer.verdict in _DONE and answer.status is JobStatus.RUNNING:
        said = "runs; its worker has been asked to stop"
    elif answer.verdict in _DONE:
        said = "is cancelled"
    elif answer.verdict is Verdict.SEALED:
        said = "is sealed: its outcome is recorded, so it can only complete"
    elif answer.verdict is Verdict.REFUSED:
        said = f"has {answer.status} already, so it cannot be cancelled"
    else:
        said = _why_not(answer)
    return _tell_job(answer, said, as_json)


@click.command()
@click.argument("job_id", metavar="ID", type=int)
@click.option("--attempts", type=int, default=1, show_default=True, help="How many more to allow.")
@json_option
@store_options
def retry(store: PostgresStore | SqliteStore, job_id: int, attempts: int, as_json: bool) -> int:
    """Queue a failed or cancelled job again, under the same id."""
    answer = _ask(store, lambda plane: plane.retry(job_id, attempts))
    if answer.verdict in _DONE:
        said = "is queued again"
    elif answer.verdict is Verdict.DUPLICATE:
        said = "has a dedup key that another live job of its queue has now"
    elif answer.verdict is Verdict.REFUSED:
        said = f"is {answer.status}, and only failed and cancelled jobs can be retried"
    else:
        said = _why_not(answer)
    return _tell_job(answer, said, as_json)


@click.command()
@click.argument("queue")
@json_option
@store_options
def pause(store: PostgresStore | SqliteStore, queue: str, as_json: bool) -> int:
    """Stop claims from a queue.

    What runs goes on, and jobs may still be added.
    """
    return _tell_queue(_ask(store, lambda plane: plane.pause(queue)), "is paused", as_json)


@click.command()
@click.argument("queue")
@json_option
@store_options
def resume(store: PostgresStore | SqliteStore, queue: str, as_json: bool) -> int:
    """Allow claims from a queue again."""
    return _tell_queue(_ask(store, lambda plane: plane.resume(queue)), "is not paused", as_json)


@click.command()
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_LAPSED),
    default=1_000,
    show_default=True,
    help="At most so many leases, the oldest first.",
)
@json_option
@store_options
def sweep(store: PostgresStore | SqliteStore, limit: int, as_json: bool) -> None:
    """Decide about lapsed leases now, as workers do."""
    swept = _ask(store, lambda plane: plane.sweep(new_worker_id(), limit))
    if as_json:
        print_json(swept)
    elif swept:
        counts = Counter(f"{each.outcome}, now {each.status}" for each in swept)
        for what, count in sorted(counts.items()):
            click.echo(f"{count} {what}")
    else:
        click.echo("no lease has lapsed")


def _ask(store: PostgresStore | SqliteStore, question: Callable[[ControlPlane], T]) -> T:
    plane = checked(store).control_plane()
    try:
        return question(plane)
    finally:
        plane.close()


def _tell_job(answer: JobAnswer, said: str, as_json: bool) -> int:
    return _tell(answer, f"job {answer.job_id} {said}", as_json)


def _tell_queue(answer: QueueAnswer, said: str, as_json: bool) -> int:
    if answer.verdict not in _DONE:
        said = _why_not(answer)
    return _tell(answer, f"queue {one_line(answer.queue)} {said}", as_json)


def _tell(answer: JobAnswer | QueueAnswer, sentence: str, as_json: bool) -> int:
    if as_json:
        print_json(answer)
    if answer.verdict not in _DONE:
        raise click.ClickException(f"{sentence}; nothing was changed")
    if not as_json:
        click.echo(f"{sentence} already" if answer.verdict is Verdict.ALREADY else sentence)
    return 0


def _why_not(answer: JobAnswer | QueueAnswer) -> str:
    if answer.verdict is not Verdict.DEFERRED:
        return f"the answer is {answer.verdict}"
    holder = "" if answer.holder_pid is None else f" (server process {answer.holder_pid})"
    return f"is held by another transaction{holder}, try again"
