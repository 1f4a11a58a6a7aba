"""Threads in which handlers run."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from tenure.slots import Ended
from tenure.standing import Standing
from tenure.values import Outcome
from tenure.writing import about

logger = logging.getLogger(__name__)


class Threads:
    """The usual place for handlers: a thread for each one that runs.

    Threads are made when they are first needed and then kept. They are daemons: a handler that
    does not end cannot keep the process from ending. What is started by the end of a job runs
    next on the thread of that job, for to wake another one takes longer than a short handler.
    """

    def __init__(self, execute: Callable[[Standing], Outcome | None]) -> None:
        """`execute` runs a handler and says how its lease is to end; see `Worker.execute`."""
        self._execute = execute
        self._work: queue.SimpleQueue[tuple[Standing, Ended] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._busy = 0
        self._threads = 0
        self._mine = _Mine()

    def start(self, standing: Standing, ended: Ended) -> None:
        with self._lock:
            self._busy += 1
            if self._busy > self._threads:
                self._threads += 1
                name = f"tenure-slot-{self._threads}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()
        if self._mine.is_free:
            self._mine.is_free = False
            self._mine.work = standing, ended
        else:
            self._work.put((standing, ended))

    def close(self) -> None:
        """Let every thread end once it is free."""
        with self._lock:
            for _ in range(self._threads):
                self._work.put(None)
            self._threads = 0

    def _serve(self) -> None:
        mine = self._mine
        while (work := self._work.get()) is not None:
            while work is not None:
                self._run(*work)
                work, mine.work = mine.work, None

    def _run(self, standing: Standing, ended: Ended) -> None:
        try:
            outcome = self._execute(standing)
        except BaseException:
            logger.exception("a thread caught what a worker let through")
            outcome = None
        with self._lock:
            self._busy -= 1
        self._mine.is_free = True
        try:
            ended(standing, outcome)
        except Exception:
            logger.exception(
                "the end of job %d was not taken",
                standing.lease.job_id,
                extra=about(standing.lease),
            )
        finally:
            self._mine.is_free = False


class _Mine(threading.local):
    """What the calling thread runs next."""

    is_free = False
    """Whether it is one of ours that has come to the end of a job and has no other yet."""
    work: tuple[Standing, Ended] | None = None
