"""What jobs came to, for whoever waits for them."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from concurrent.futures import TimeoutError as FutureTimeout
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, TypeAlias, TypeVar

from tenure.errors import InvalidArgument, JobCancelled, JobFailed, JobUnknown, NotEnded
from tenure.limits import check_job_id, short
from tenure.values import Enqueued, JobResult, JobStatus, Json
from tenure.waits import Waits

Timeout: TypeAlias = timedelta | float | None
"""Seconds, or a timedelta; None: however long it takes."""

_HINT = "seconds from 0 on, a timedelta, or None to wait for as long as it takes"


class Handle(Enqueued):
    """The id of an enqueued job, and whether this call made it; its result can be waited for."""

    __slots__ = ()
    _result: ClassVar[Any]

    def result(self, timeout: Timeout = None) -> Json:
        """What the handler returned, once the job has completed; see `Tenure.result`."""
        return self._result(self.job_id, timeout)


class AsyncHandle(Enqueued):
    """The id of an enqueued job, and whether this call made it; its result can be awaited."""

    __slots__ = ()
    _result: ClassVar[Any]

    async def result(self, timeout: Timeout = None) -> Json:
        """What the handler returned, once the job has completed; see `Tenure.result`."""
        return await self._result(self.job_id, timeout)


H = TypeVar("H", Handle, AsyncHandle)


def handles(kind: type[H], result: Callable[[int, Timeout], Any]) -> Callable[[Enqueued], H]:
    """Makes the handles of one app, which ask it for results.

    A class for each app: so a handle is no more than its tuple, and a batch has ten thousand.
    """
    of_app = type(kind.__name__, (kind,), {"__slots__": (), "_result": staticmethod(result)})
    return partial(tuple.__new__, of_app)


class Results:
    """Reads the result of a job, or waits for it."""

    def __init__(self, read: Callable[[int], JobResult | None], waits: Waits) -> None:
        self.read = read
        self._waits = waits

    def get(self, job_id: int, timeout: Timeout) -> Json:
        seconds = check_timeout(timeout)
        found = self.read(check_job_id(job_id))
        if found is None or found.has_ended or seconds == 0:
            return value_of(found, job_id, seconds)
        with self._waits.waiting(job_id) as end, contextlib.suppress(FutureTimeout):
            found = end.result(seconds)
        return value_of(found, job_id, seconds)

    async def wait(
        self,
        job_id: int,
        timeout: Timeout,
        read: Callable[[int], Awaitable[JobResult | None]],
    ) -> Json:
        """The same without keeping a thread; `read` is the read of the constructor, awaited."""
        seconds = check_timeout(timeout)
        found = await read(check_job_id(job_id))
        if found is None or found.has_ended or seconds == 0:
            return value_of(found, job_id, seconds)
        with self._waits.waiting(job_id) as end, contextlib.suppress(TimeoutError):
            found = await asyncio.wait_for(asyncio.wrap_future(end), seconds)
        return value_of(found, job_id, seconds)


def value_of(found: JobResult | None, job_id: int, seconds: float | None) -> Any:
    """The result of a job that has completed; raises for every other."""
    if found is None:
        raise JobUnknown(
            f"there is no job {job_id}", hint="was the transaction that enqueued it committed?"
        )
    if found.status is JobStatus.COMPLETED:
        return found.result
    if found.status is JobStatus.FAILED:
        raise JobFailed(
            f"job {job_id} failed: {': '.join(filter(None, (found.error_type, found.message)))}",
            error_type=found.error_type,
            error_message=found.message or "",
        )
    if found.status is JobStatus.CANCELLED:
        raise JobCancelled(f"job {job_id} was cancelled")
    assert seconds is not None
    raise NotEnded(f"job {job_id} has not ended within {seconds:g} s: it is {found.status}")


def check_timeout(timeout: Timeout) -> float | None:
    """The seconds to wait."""
    if timeout is None:
        return None
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidArgument(f"timeout is not a number: {short(timeout)}", hint=_HINT)
    if math.isnan(seconds) or seconds < 0:
        raise InvalidArgument(f"timeout is out of range: {short(seconds)}", hint=_HINT)
    # A longer one would be more than a lock can be waited for.
    return min(float(seconds), 365 * 86_400.0)
