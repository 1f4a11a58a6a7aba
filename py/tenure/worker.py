"""Runs a job that is owned already, then decides how its lease ends."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeAlias

from tenure.control_plane import LEASE_FOR
from tenure.errors import CancelRequested
from tenure.failures import failure_of
from tenure.job import Job
from tenure.owner import Owner
from tenure.standing import Standing
from tenure.values import Failure, JobLease, Json, Settled, Verdict
from tenure.writing import NOT_STORABLE, about, until_written

logger = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[Job], Any]
"""Does the work of one kind; what it returns is the job's result and must be JSON."""

_UNKNOWN_FIRST = timedelta(seconds=1)
_UNKNOWN_MOST = timedelta(minutes=10)


class Worker:
    """Execution only: it is given leases, and never asks for one.

    How the handler ends decides how the lease ends:

    | the handler | the lease |
    |---|---|
    | returns JSON | complete |
    | returns something else | fail, not to be tried again: `result not storable` |
    | raises `CancelRequested` after an accepted cancellation | acknowledge_cancel |
    | raises anything after the lease was lost | nothing is written |
    | raises after `job.seal` | complete, with the sealed result |
    | raises `KeyboardInterrupt` in the main thread | release, attempt spent; raised again |
    | raises anything else | fail; queued again while attempts are left |

    "Anything else" includes `SystemExit`, `GeneratorExit`, `asyncio.CancelledError` and
    `MemoryError`: a handler cannot end the process that runs it, and is not run for ever.

    A kind without a handler is given back uncharged, after a delay that grows with every such
    claim from 1 s to 10 min: during a rolling deployment another worker may know it.
    """

    def __init__(
        self,
        control_plane: Owner,
        handlers: Mapping[str, Handler],
        *,
        lease_for: timedelta = LEASE_FOR,
    ) -> None:
        """`lease_for` is how long a lease is believed in when `run` is given no standing."""
        self._owner = control_plane
        self._handlers = handlers
        self._lease_for = lease_for

    def run(self, lease: JobLease, standing: Standing | None = None) -> Settled | None:
        """See one job through; None when its lease was lost and nothing was written.

        What cannot be written is tried again while the lease is good, and is never made a
        failure of the job. `standing` says until when that is; without one it is `lease_for`
        from now, because nobody renews.
        """
        if standing is None:
            standing = Standing(lease, sent=time.monotonic(), lease_for=self._lease_for)
        if not standing.start():
            return None
        handler = self._handlers.get(lease.kind)
        if handler is None:
            return self._release_unknown(standing)
        try:
            result = handler(Job(self._owner, standing))
        except BaseException as error:
            return self._end_after(error, standing)
        return self._complete(result, standing)

    def _end_after(self, error: BaseException, standing: Standing) -> Settled | None:
        if isinstance(error, KeyboardInterrupt) and _in_main_thread():
            self._release(standing)
            raise error
        if standing.lost is not None:
            self._log_dropped(standing)
            return None
        if standing.sealed:
            logger.warning(
                "job %d was sealed, so it completes although its handler raised %s",
                standing.lease.job_id,
                type(error).__name__,
                extra=about(standing.lease),
            )
            return self._complete(None, standing)
        if isinstance(error, CancelRequested) and standing.cancel_requested:
            return self._acknowledge_cancel(standing)
        return self._fail(failure_of(error), standing)

    def _complete(self, result: Json, standing: Standing) -> Settled | None:
        lease = standing.lease
        if standing.sealed:
            result = None
        try:
            settled = self._write(
                lambda: self._owner.complete(lease.job_id, lease.worker_id, lease.token, result),
                standing,
                "complete",
            )
        except NOT_STORABLE as error:
            return self._fail(
                Failure(error_type="result not storable", message=str(error), retryable=False),
                standing,
            )
        if settled is not None and settled.verdict is Verdict.CANCEL_REQUESTED:
            return self._acknowledge_cancel(standing)
        return settled

    def _fail(self, failure: Failure, standing: Standing) -> Settled | None:
        lease = standing.lease
        logger.warning(
            "attempt %d of %d of job %d failed: %s\n%s",
            lease.attempt,
            lease.max_attempts,
            lease.job_id,
            failure.error_type,
            failure.traceback or failure.message,
            extra=about(lease),
        )
        settled = self._write(
            lambda: self._owner.fail(lease.job_id, lease.worker_id, lease.token, failure),
            standing,
            "fail",
        )
        return self._complete_if_sealed(settled, standing)

    def _acknowledge_cancel(self, standing: Standing) -> Settled | None:
        lease = standing.lease
        settled = self._write(
            lambda: self._owner.acknowledge_cancel(lease.job_id, lease.worker_id, lease.token),
            standing,
            "acknowledge_cancel",
        )
        return self._complete_if_sealed(settled, standing)

    def _release(self, standing: Standing, **options: Any) -> Settled | None:
        lease = standing.lease
        arguments = {"started": True} | options
        settled = self._write(
            lambda: self._owner.release(lease.job_id, lease.worker_id, lease.token, **arguments),
            standing,
            "release",
        )
        return self._complete_if_sealed(settled, standing)

    def _release_unknown(self, standing: Standing) -> Settled | None:
        lease = standing.lease
        # Each claim mints a token, and only charged ones count as attempts: the difference is
        # the number of times the job was given back before.
        given_back = max(0, lease.token - lease.attempt)
        delay = min(_UNKNOWN_MOST, _UNKNOWN_FIRST * 2 ** min(given_back, 10))
        logger.warning(
            "job %d is of the kind %r, which has no handler here; given back for %d s",
            lease.job_id,
            lease.kind,
            delay.total_seconds(),
            extra=about(lease),
        )
        return self._release(standing, started=False, delay=delay)

    def _complete_if_sealed(self, settled: Settled | None, standing: Standing) -> Settled | None:
        """A sealed job answers every other verb `sealed`: only completing ends it."""
        if settled is None or settled.verdict is not Verdict.SEALED:
            return settled
        standing.sealed = True
        return self._complete(None, standing)

    def _write(self, write: Callable[[], Settled], standing: Standing, verb: str) -> Settled | None:
        lease = standing.lease
        settled = until_written(write, standing, verb)
        if settled is None or settled.verdict is Verdict.LOST:
            standing.lose("the token is not the current one")
            self._log_dropped(standing)
        elif settled.verdict in (Verdict.OK, Verdict.ALREADY):
            logger.debug("%s of job %d: %s", verb, lease.job_id, settled.status, extra=about(lease))
        return settled

    def _log_dropped(self, standing: Standing) -> None:
        logger.warning(
            "job %d is lost, its outcome is dropped: %s",
            standing.lease.job_id,
            standing.lost,
            extra=about(standing.lease),
        )


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
