"""Runs what is due in the calling thread, one job after the other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta

from tenure import limits
from tenure.backing import backing_of
from tenure.housekeeping import SWEEP_LIMIT
from tenure.identity import new_worker_id
from tenure.postgres_store import PostgresStore
from tenure.sqlite_store import SqliteStore
from tenure.standing import Standing
from tenure.tasks import Tasks
from tenure.transactions import Transactions
from tenure.values import JobStatus, Json, Outcome
from tenure.worker import Worker

LEASE_FOR = timedelta(hours=1)
"""Nobody renews meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """What one run of a job came to."""

    job_id: int
    kind: str
    attempt: int
    status: JobStatus
    """The job's afterwards; `queued` when it is to be tried again or was given back."""
    result: Json
    """What it completed with."""
    error: BaseException | None = field(default=None, compare=False)
    """What its handler raised."""


class _Watched(Worker):
    """Keeps what the handler raised."""

    error: BaseException | None = None

    def after_error(self, error: BaseException, standing: Standing) -> Outcome | None:
        self.error = error
        return super().after_error(error, standing)


def drain(
    store: PostgresStore | SqliteStore,
    tasks: Tasks,
    *,
    queues: Sequence[str],
    limit: int | None = None,
) -> list[Drained]:
    """See `Tenure.drain`."""
    queues = limits.check_queues(queues)
    worker_id = new_worker_id()
    transactions = Transactions(store)
    drained: list[Drained] = []
    with closing(transactions), closing(backing_of(store).open()) as plane:
        worker = _Watched(plane, tasks, transactions=transactions, retryable=tasks.retryable)
        while len(plane.sweep(worker_id, SWEEP_LIMIT)) == SWEEP_LIMIT:
            pass
        while limit is None or len(drained) < limit:
            sent = time.monotonic()
            leases = plane.claim(queues, worker_id, max_jobs=1, lease_for=LEASE_FOR)
            if not leases:
                break
            worker.error = None
            worker.run(leases[0], Standing(leases[0], sent=sent, lease_for=LEASE_FOR))
            record = plane.job(leases[0].job_id)
            assert record is not None
            drained.append(
                Drained(
                    job_id=record.job_id,
                    kind=record.kind,
                    attempt=leases[0].attempt,
                    status=record.status,
                    result=record.result,
                    error=worker.error,
                )
            )
    return drained
