"""What a runner needs of a store besides the control plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol

from tenure.backing_postgres import PostgresBacking
from tenure.backing_sqlite import SqliteBacking
from tenure.postgres_store import PostgresStore
from tenure.records import JobRecord
from tenure.sleeper import Sleeper
from tenure.sqlite_store import SqliteStore
from tenure.store import OwnedControlPlane
from tenure.values import Enqueued, JobResult, Json, NewJob


class Plane(OwnedControlPlane, Protocol):
    """A control plane on a connection of its own, with the housekeeping over the same one."""

    def wake(self, queues: Sequence[str]) -> None:
        """Wake whoever sleeps on these queues: for jobs enqueued with `notify=False`."""
        ...

    def enqueue_and_wake(self, job: NewJob) -> tuple[Enqueued, bool]:
        """Add one job, and wake who sleeps on its queue; whether nobody is left to be woken.

        A transaction of its own, as `enqueue` otherwise. After False, call `wake`.
        """
        ...

    def worker_seen(self, worker_id: str, queues: Sequence[str], info: Json) -> None:
        """Note for people that a worker is alive."""
        ...

    def maintain(self) -> list[str]:
        """Look after the tables, and say what was done; cheap when there is nothing to do."""
        ...

    def job(self, job_id: int) -> JobRecord | None:
        """The job, live or in the history that is kept; None for an unknown id."""
        ...

    def results(self, job_ids: Sequence[int]) -> list[JobResult]:
        """What has come of 1 to 1,000 jobs, in no order; none for an unknown id."""
        ...

    def answer_within(self, limit: timedelta) -> None:
        """Give up on a call that is not answered in time: it raises as a broken one does."""
        ...

    @property
    def stale(self) -> bool:
        """Whether the other side has hung up while the connection was idle."""
        ...


class Backing(Protocol):
    """Opens the planes and sleepers of one store."""

    def open(self) -> Plane:
        """A new one, which the caller closes."""
        ...

    def check(self) -> None:
        """Raise `ServerUnavailable` or `SchemaOutdated` unless jobs can be worked on there."""
        ...

    def sleeper(
        self,
        queues: Sequence[str],
        *,
        poll_floor: timedelta,
        on_cancel: Callable[[int], None],
    ) -> Sleeper:
        """A new one, which the caller closes.

        `on_cancel` is given the id of a job as soon as its cancellation is accepted, where the
        store can tell; the heartbeat learns of it in any case.
        """
        ...


def backing_of(store: PostgresStore | SqliteStore) -> PostgresBacking | SqliteBacking:
    if isinstance(store, PostgresStore):
        return PostgresBacking(store)
    return SqliteBacking(store)
