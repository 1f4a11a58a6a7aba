"""What a runner tells about its jobs, for metrics."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tenure.standing import Key, Standing
from tenure.values import Failure, JobLease, JobStatus, Outcome, Settled, Verb, Verdict
from tenure.writing import about

logger = logging.getLogger("tenure.worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """Something that has happened to a job in this process."""

    name: str
    """That of the hook."""
    lease: JobLease
    status: JobStatus | None
    """The job's afterwards: a failed attempt leaves it queued or failed. None: not known."""
    seconds: float | None
    """Since the handler was started; None when it was not."""
    failure: Failure | None = None
    """With `failed`, and with `cancelled` by the handler itself."""


Hook: TypeAlias = Callable[[JobEvent], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Functions that a runner calls with a `JobEvent`; each may be left out.

    Every claimed job gets `claimed`, mostly `started`, and exactly one of the others, once the
    database has answered; none if the process dies. A hook is called on a thread that other jobs
    wait for, so it must not wait for anything itself; what it raises is logged, and changes
    nothing. Counters of `prometheus_client` or OpenTelemetry are quick enough.
    """

    claimed: Hook | None = None
    started: Hook | None = None
    """Its handler is about to be called."""
    completed: Hook | None = None
    failed: Hook | None = None
    """The attempt; the status says whether the job is tried again."""
    lost: Hook | None = None
    """The lease; another worker has the job or will have it, or it was ended meanwhile."""
    cancelled: Hook | None = None
    released: Hook | None = None
    """Given back: by the handler, on a stop, or because its kind is not known here."""


_BY_STATUS = {
    JobStatus.COMPLETED: "completed",
    JobStatus.FAILED: "failed",
    JobStatus.CANCELLED: "cancelled",
}
_BY_VERB = {
    Verb.COMPLETE: "completed",
    Verb.FAIL: "failed",
    Verb.RELEASE: "released",
    Verb.ACKNOWLEDGE_CANCEL: "cancelled",
}


class Telling:
    """Calls the hooks, each end of a lease once. Threads: any."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._lock = threading.Lock()
        self._started: dict[Key, float | None] = {}

    def claimed(self, standings: Sequence[Standing]) -> None:
        with self._lock:
            self._started.update((standing.key, None) for standing in standings)
        for standing in standings:
            self._tell("claimed", standing, JobStatus.RUNNING, None)

    def started(self, standing: Standing) -> None:
        with self._lock:
            if standing.key not in self._started:
                return
            self._started[standing.key] = time.monotonic()
        self._tell("started", standing, JobStatus.RUNNING, None)

    def ended(
        self, standing: Standing, outcome: Outcome | None, answer: Settled | None = None
    ) -> None:
        """The lease has ended. Without an answer: in the handler's transaction, or it was lost."""
        if answer is None:
            if not standing.ended and standing.lost is None:
                return  # withdrawn, so it is still to be given back
            name, status = ("completed", JobStatus.COMPLETED) if standing.ended else ("lost", None)
        elif answer.verdict in (Verdict.OK, Verdict.ALREADY) and outcome is not None:
            status = answer.status
            by_verb = _BY_VERB[outcome.verb]
            name = by_verb if status is None else _BY_STATUS.get(status, by_verb)
        else:
            name, status = "lost", None
        with self._lock:
            if standing.key not in self._started:
                return
            began = self._started.pop(standing.key)
        seconds = None if began is None else time.monotonic() - began
        failure = None if outcome is None or name == "lost" else outcome.failure
        self._tell(name, standing, status, seconds, failure)

    def _tell(
        self,
        name: str,
        standing: Standing,
        status: JobStatus | None,
        seconds: float | None,
        failure: Failure | None = None,
    ) -> None:
        hook: Hook | None = getattr(self._hooks, name)
        if hook is None:
            return
        lease = standing.lease
        try:
            hook(JobEvent(name=name, lease=lease, status=status, seconds=seconds, failure=failure))
        except Exception:
            logger.exception(
                "the hook %r failed for job %d", name, lease.job_id, extra=about(lease)
            )
