"""Threads in which handlers run."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence

logger = logging.getLogger(__name__)


class Slots:
    """A fixed number of places for jobs of one or more queues.

    Threads are made when they are first needed and then kept. They are daemons: a handler that
    does not end cannot keep the process from ending.
    """

    def __init__(self, queues: Sequence[str], size: int, *, freed: Callable[[bool], None]) -> None:
        """`freed` is called, on the slot's thread, whenever a place becomes free; with True
        when there was none before."""
        self.queues = tuple(queues)
        self.size = size
        self._freed = freed
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._busy = 0
        self._threads = 0

    @property
    def free(self) -> int:
        return self.size - self._busy

    @property
    def busy(self) -> int:
        return self._busy

    def run(self, work: Callable[[], None]) -> None:
        """Run `work` in a free place; only as many as are `free` may be given."""
        with self._lock:
            self._busy += 1
            if self._busy > self._threads:
                self._threads += 1
                name = f"tenure-{self.queues[0]}-{self._threads}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()
        self._work.put(work)

    def close(self) -> None:
        """Let every thread end once it is free."""
        with self._lock:
            for _ in range(self._threads):
                self._work.put(None)
            self._threads = 0

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                work()
            except BaseException:
                logger.exception("a slot caught what a worker let through")
            finally:
                with self._lock:
                    was_full = self.free == 0
                    self._busy -= 1
                self._freed(was_full)
