"""An event loop in which `async def` handlers run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

from tenure.slots import Ended
from tenure.standing import Standing
from tenure.values import Outcome

logger = logging.getLogger(__name__)

CLOSES_WITHIN = 2.0
"""Seconds for which a stop waits for cancelled handlers to come to their end."""

Execute: TypeAlias = Callable[[Standing], Coroutine[Any, Any, Outcome | None]]


class EventLoop:
    """The place of `async def` handlers: a task for each, on a loop with a thread of its own.

    Nothing else runs there, so a handler that blocks the loop holds up its like and nobody
    else: no heartbeat, no claim, no thread. A handler is cancelled, once, when its lease is lost,
    when a cancellation of its job was accepted, and a moment before its timeout is over; it sees
    `asyncio.CancelledError` where it awaits. One that goes on all the same is not stopped.
    """

    def __init__(
        self,
        execute: Execute,
        *,
        after_error: Callable[[BaseException, Standing], Outcome | None],
    ) -> None:
        """See `Worker.execute_async`; `after_error` is for a task cancelled before it began."""
        self._execute = execute
        self._after_error = after_error
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._over: asyncio.Event
        self._tasks: set[asyncio.Task[Outcome | None]] = set()

    def start(self, standing: Standing, ended: Ended) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="tenure-event-loop", daemon=True
                )
                self._thread.start()
        self._ready.wait()
        if not self._soon(self._begin, standing, ended):
            ended(standing, None)

    def close(self) -> None:
        """Cancel what still runs, and wait a little for it."""
        if self._thread is None:
            return
        self._ready.wait()
        self._soon(self._over.set)
        self._thread.join(CLOSES_WITHIN)
        if self._thread.is_alive():
            logger.warning("%d handlers do not end when they are cancelled", len(self._tasks))

    def _soon(self, call: Callable[..., object], *arguments: object) -> bool:
        """Have the loop call this; False when there is no loop any more."""
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:
            return False
        return True

    def _serve(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(self._until_over())

    async def _until_over(self) -> None:
        self._over = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._ready.set()
        await self._over.wait()

    def _begin(self, standing: Standing, ended: Ended) -> None:
        task = asyncio.get_running_loop().create_task(
            self._execute(standing), name=f"tenure-job-{standing.lease.job_id}"
        )
        self._tasks.add(task)
        cancellation = _Cancellation(standing, task)

        def changed() -> None:
            self._soon(cancellation.look)

        standing.watch(changed)
        cancellation.look()
        task.add_done_callback(partial(self._ended, standing, ended, cancellation))

    def _ended(
        self,
        standing: Standing,
        ended: Ended,
        cancellation: _Cancellation,
        task: asyncio.Task[Outcome | None],
    ) -> None:
        standing.watch(None)
        cancellation.close()
        self._tasks.discard(task)
        if task.cancelled():
            outcome = self._after_error(asyncio.CancelledError(), standing)
        elif (error := task.exception()) is not None:
            logger.error("a task raised what a worker let through", exc_info=error)
            outcome = None
        else:
            outcome = task.result()
        try:
            ended(standing, outcome)
        except Exception:
            logger.exception("the end of job %d was not taken", standing.lease.job_id)


class _Cancellation:
    """Cancels a handler's task when there is reason to stop, and does so once."""

    def __init__(self, standing: Standing, task: asyncio.Task[Outcome | None]) -> None:
        self._standing = standing
        self._task = task
        self._told = False
        self._timer: asyncio.TimerHandle | None = None
        if standing.lease.timeout is not None:
            self._timer = task.get_loop().call_at(standing.stop_at, self.look)

    def look(self) -> None:
        if not self._told and self._standing.why_stop() is not None:
            self._told = self._task.cancel()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
