"""Wakes sleepers after commits, for many commits at once when they come fast."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence

logger = logging.getLogger(__name__)

EVERY = 0.005
"""Seconds between two wakes at the least."""


class Waker:
    """Calls `wake` for queues that were noted; the first at once, later ones together.

    Coalescing is safe because a wake covers every job committed before it. A wake that fails is
    logged and no more: the jobs are committed, and sleepers find them at their poll floor.

    Threads: any. The one that wakes is made at the first note, and again in a forked child.
    """

    def __init__(self, wake: Callable[[list[str]], None]) -> None:
        self._wake = wake
        self._changed = threading.Condition()
        self._noted: dict[str, None] = {}
        self._busy = False
        self._closed = False
        self._process: int | None = None

    def note(self, queues: Sequence[str]) -> None:
        """Jobs of these queues were committed."""
        with self._changed:
            self._noted.update(dict.fromkeys(queues))
            if self._process != os.getpid():
                self._process = os.getpid()
                self._busy = False
                threading.Thread(target=self._run, name="tenure-waker", daemon=True).start()
            self._changed.notify_all()

    def flush(self, seconds: float = 5.0) -> bool:
        """Wait until everything noted so far was sent; False when that takes too long."""
        with self._changed:
            if self._process != os.getpid():
                return True
            return self._changed.wait_for(
                lambda: not self._noted and not self._busy, timeout=seconds
            )

    def close(self) -> None:
        """Send what is noted, then let the thread end. A later note starts another."""
        self.flush()
        with self._changed:
            self._process = None
            self._changed.notify_all()

    def _run(self) -> None:
        me = os.getpid()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._noted or self._process != me)
                if self._process != me:
                    return
                queues, self._noted = list(self._noted), {}
                self._busy = True
            try:
                self._wake(queues)
            except Exception as error:
                logger.warning("sleepers on %s were not woken: %s", ", ".join(queues), error)
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._process != me, timeout=EVERY)
