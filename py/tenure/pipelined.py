"""A large batch sent in parts, each made while the server is at work on the one before."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from tenure.postgres_call import Functions, translated
from tenure.postgres_producer import enqueue_many_call
from tenure.values import Enqueued, NewJob

PART = 1_000
"""Jobs."""


def is_worth_it(jobs: Sequence[NewJob]) -> bool:
    """Whether a batch may be sent in parts, and is done sooner so.

    Not with dedup keys: one statement takes them in sorted order, without which two batches that
    share keys could wait for each other.
    """
    return (
        len(jobs) > PART
        and psycopg.Pipeline.is_supported()
        and all(getattr(job, "dedup_key", "") is None for job in jobs)
    )


def enqueue_in_parts(
    functions: Functions, jobs: Sequence[NewJob], *, notify: bool
) -> list[Enqueued]:
    """Add all or none, in a transaction of its own over an autocommit connection.

    As `enqueue_many`, but for the places in messages, which are counted within a part.
    """
    connection = functions.connection
    jobs = list(jobs)
    with (
        translated(connection, functions.schema),
        connection.pipeline(),
        connection.transaction(),
    ):
        sent = []
        for first in range(0, len(jobs), PART):
            call = enqueue_many_call(jobs[first : first + PART], notify=notify)
            cursor = psycopg.Cursor(connection)
            cursor.execute(call.query(functions.prefix), call.arguments, binary=True)
            sent.append((call, cursor))
        return [added for call, cursor in sent for added in call.read(cursor.fetchall())]
