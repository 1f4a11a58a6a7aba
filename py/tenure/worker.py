"""Runs a job that is owned already, then decides how its lease ends."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias

from tenure.control_plane import LEASE_FOR
from tenure.ending import NOT_STORABLE, follow_up, not_storable, write
from tenure.errors import CancelRequested
from tenure.failures import failure_of
from tenure.job import Job
from tenure.owner import Owner
from tenure.signals import Cancel, Fail, Release, Retry
from tenure.standing import Standing
from tenure.transactions import Transactions
from tenure.values import Failure, JobLease, Json, Outcome, Settled, Verb, Verdict
from tenure.writing import about, log_dropped, until_written

logger = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[Job], Any]
"""Does the work of one kind; what it returns is the job's result and must be JSON.

A plain function, or an `async def`, whose result is what it returns when it has been awaited.
"""

ASKS_EVERY = 0.25
"""Seconds after which an `async def` that has a loop to itself is asked whether it may go on."""

Retryable: TypeAlias = Callable[[str, BaseException], bool]
"""Whether a job of this kind is worth another attempt after its handler raised this."""


def always(kind: str, error: BaseException) -> bool:
    return True


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
    | raises `TimedOut` | fail, as any other error; queued again while attempts are left |
    | is an `async def` and is cancelled for such a reason | as if it had raised that error |
    | raises anything after the lease was lost | nothing is written |
    | raises after `job.seal` | complete, with the sealed result |
    | went through `job.transaction` | it has ended; nothing is written |
    | left `job.transaction` in doubt | fail, whatever it returns or raises |
    | raises `Retry` | fail; queued again after its delay while attempts are left |
    | raises `Fail` | fail, not to be tried again |
    | raises `Release` | release, attempt spent; due again after its delay |
    | raises `Cancel` | fail that ends cancelled |
    | raises `KeyboardInterrupt` in the main thread | release, attempt spent; raised again |
    | raises anything else | fail; queued again while it is retryable and attempts are left |

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
        transactions: Transactions | None = None,
        retryable: Retryable = always,
    ) -> None:
        """`lease_for` is how long a lease is believed in when `run` is given no standing.

        `transactions` are for `Job.transaction`, which is refused without. `retryable` says of
        a kind and an exception whether another attempt is worth it.
        """
        self._transactions = transactions
        self._owner = control_plane
        self._handlers = handlers
        self._lease_for = lease_for
        self._retryable = retryable

    def run(self, lease: JobLease, standing: Standing | None = None) -> Settled | None:
        """See one job through; None when its lease was lost and nothing was written.

        What cannot be written is tried again while the lease is good, and is never made a
        failure of the job. `standing` says until when that is; without one it is `lease_for`
        from now, because nobody renews.
        """
        if standing is None:
            standing = Standing(lease, sent=time.monotonic(), lease_for=self._lease_for)
        try:
            outcome = self.execute(standing)
        except KeyboardInterrupt:
            if not standing.ended:
                self._settle(_released(lease), standing)
            raise
        return None if outcome is None else self._settle(outcome, standing)

    def execute(self, standing: Standing) -> Outcome | None:
        """Run the handler, and decide how the lease is to end. Writes nothing.

        None when there is nothing to write: the lease was withdrawn or lost, or the handler
        ended it. Raises `KeyboardInterrupt` from the main thread, and nothing else.
        """
        if not standing.start():
            return None
        handler = self._handlers.get(standing.lease.kind)
        if handler is None:
            return _released_unknown(standing.lease)
        try:
            result = handler(self.job(standing))
            if inspect.iscoroutine(result):
                result = asyncio.run(_until_told(result, standing))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and _in_main_thread():
                raise
            return self.after_error(error, standing)
        return self.after_result(result, standing)

    async def execute_async(self, standing: Standing) -> Outcome | None:
        """As `execute`, for an `async def` handler, on the loop that runs this.

        The caller cancels the task when `Standing.why_stop` has a reason. Raises nothing, unless
        it is cancelled before it began.
        """
        if not standing.start():
            return None
        try:
            result = await self._handlers[standing.lease.kind](self.job(standing))
        except BaseException as error:  # an exit would end the loop
            return self.after_error(error, standing)
        return self.after_result(result, standing)

    def job(self, standing: Standing) -> Job:
        """What the handler is given."""
        return Job(self._owner, standing, self._transactions)

    def after_result(self, result: Json, standing: Standing) -> Outcome | None:
        """How a lease ends whose handler returned this."""
        if standing.ended:
            return None
        if standing.lost is not None:
            log_dropped(standing)
            return None
        if standing.doubt is not None:
            return _failed(standing.doubt, standing.lease)
        lease = standing.lease
        return Outcome(
            lease.job_id, lease.token, Verb.COMPLETE, None if standing.sealed else result
        )

    def after_failure(self, failure: Failure, standing: Standing) -> Outcome | None:
        """How a lease ends whose handler was not there any more to raise anything."""
        if standing.ended or standing.lost is not None or standing.sealed:
            return self.after_result(None, standing)
        return _failed(failure, standing.lease)

    def after_error(self, error: BaseException, standing: Standing) -> Outcome | None:
        """How a lease ends whose handler raised this."""
        lease = standing.lease
        if standing.ended:
            return None
        if standing.lost is not None:
            log_dropped(standing)
            return None
        if standing.doubt is not None:
            return _failed(standing.doubt, standing.lease)
        if standing.sealed:
            logger.warning(
                "job %d was sealed, so it completes although its handler raised %s",
                lease.job_id,
                type(error).__name__,
                extra=about(lease),
            )
            return Outcome(job_id=lease.job_id, token=lease.token, verb=Verb.COMPLETE)
        if isinstance(error, asyncio.CancelledError) and (why := standing.why_stop()) is not None:
            why.__cause__ = error
            error = why
        if isinstance(error, CancelRequested) and standing.cancel_requested:
            return Outcome(job_id=lease.job_id, token=lease.token, verb=Verb.ACKNOWLEDGE_CANCEL)
        return self._ended_by(error, lease)

    def _ended_by(self, error: BaseException, lease: JobLease) -> Outcome:
        if isinstance(error, Release):
            logger.info(
                "job %d was given back by its handler: %s",
                lease.job_id,
                error.message,
                extra=about(lease),
            )
            return _released(lease, error.after)
        if isinstance(error, Retry):
            return _failed(failure_of(error.recorded), lease, delay=error.after)
        if isinstance(error, Fail):
            return _failed(failure_of(error.recorded, retryable=False), lease)
        if isinstance(error, Cancel):
            return _failed(failure_of(error.recorded, cancel=True), lease)
        return _failed(failure_of(error, retryable=self._retryable(lease.kind, error)), lease)

    def _settle(self, outcome: Outcome, standing: Standing) -> Settled | None:
        """Write the outcome, by the calls that it takes."""
        owner, worker_id = self._owner, standing.lease.worker_id
        settled: Settled | None = None
        next_outcome: Outcome | None = outcome
        while next_outcome is not None:
            outcome = next_outcome
            try:
                settled = until_written(partial(write, owner, worker_id, outcome), standing)
            except NOT_STORABLE as error:
                if outcome.verb is not Verb.COMPLETE:
                    raise
                next_outcome = not_storable(standing.lease, "result", error)
                continue
            if settled is None or settled.verdict is Verdict.LOST:
                standing.lose("the token is not the current one")
                log_dropped(standing)
                return settled
            next_outcome = follow_up(outcome, settled.verdict)
        return settled


def _failed(failure: Failure, lease: JobLease, *, delay: timedelta | None = None) -> Outcome:
    if failure.cancel:
        logger.info(
            "job %d was cancelled by its handler: %s",
            lease.job_id,
            failure.message,
            extra=about(lease),
        )
    else:
        logger.warning(
            "attempt %d of %d of job %d failed: %s\n%s",
            lease.attempt,
            lease.max_attempts,
            lease.job_id,
            failure.error_type,
            failure.traceback or failure.message,
            extra=about(lease),
        )
    return Outcome(
        job_id=lease.job_id, token=lease.token, verb=Verb.FAIL, failure=failure, delay=delay
    )


def _released(lease: JobLease, delay: timedelta | None = None) -> Outcome:
    return Outcome(
        job_id=lease.job_id, token=lease.token, verb=Verb.RELEASE, started=True, delay=delay
    )


def _released_unknown(lease: JobLease) -> Outcome:
    return released_later(lease, f"is of the kind {lease.kind!r}, which has no handler here")


def released_later(lease: JobLease, why: str) -> Outcome:
    """A job that cannot be started here is given back uncharged, for longer each time."""
    # Each claim mints a token, and only charged ones count as attempts: the difference is the
    # number of times the job was given back before.
    given_back = max(0, lease.token - lease.attempt)
    delay = min(_UNKNOWN_MOST, _UNKNOWN_FIRST * 2 ** min(given_back, 10))
    logger.warning(
        "job %d %s; given back for %d s",
        lease.job_id,
        why,
        delay.total_seconds(),
        extra=about(lease),
    )
    return Outcome(
        job_id=lease.job_id, token=lease.token, verb=Verb.RELEASE, started=False, delay=delay
    )


def is_async(handler: Handler) -> bool:
    """Whether calling it returns something to be awaited."""
    call = getattr(handler, "__call__", None)  # noqa: B004 - an object may have an async one
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(call)


async def _until_told(coroutine: Coroutine[Any, Any, Json], standing: Standing) -> Json:
    """Run a handler that has the loop to itself, and cancel it when there is reason to stop."""
    task = asyncio.ensure_future(coroutine)
    told = False
    while not (await asyncio.wait({task}, timeout=ASKS_EVERY))[0]:
        if not told and standing.why_stop() is not None:
            told = task.cancel()
    return task.result()


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
