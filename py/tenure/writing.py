"""How a worker's verb is written although the database is away for a while."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

from tenure.backoff import pauses
from tenure.ending import NOT_STORABLE
from tenure.standing import Standing
from tenure.values import JobLease, Settled, Verdict

logger = logging.getLogger("tenure.worker")


def about(lease: JobLease) -> dict[str, Any]:
    """What every log line about a job carries as `extra`; never its payload."""
    return {
        "job_id": lease.job_id,
        "kind": lease.kind,
        "attempt": lease.attempt,
        "worker_id": lease.worker_id,
    }


def until_written(
    write: Callable[[], Settled],
    standing: Standing,
    *,
    between: Callable[[], Iterator[float]] = lambda: pauses(0.05, 5.0),
) -> Settled | None:
    """The answer of `write`, tried again with growing pauses while the lease is good.

    None when the lease was lost first. A try that broke may have been written all the same, so
    one more follows after the loss: it cannot do harm, because the token decides, and it tells
    `already` from `lost`. Raises `NOT_STORABLE` at once.
    """
    broken = False
    for pause in between():
        why_lost = standing.lost
        if why_lost is not None and not broken:
            return None
        sent = time.monotonic()
        try:
            settled = write()
        except NOT_STORABLE:
            raise
        except Exception as error:
            logger.warning(
                "what became of job %d could not be written: %s",
                standing.lease.job_id,
                error,
                extra=about(standing.lease),
            )
            broken = True
        else:
            if settled.verdict is not Verdict.DEFERRED:
                return settled
            standing.proved(sent)
        if why_lost is not None:
            return None
        standing.wait_lost(pause)
    return None


def log_dropped(standing: Standing) -> None:
    logger.warning(
        "job %d is lost, its outcome is dropped: %s",
        standing.lease.job_id,
        standing.lost,
        extra=about(standing.lease),
    )
