"""Wakes sleepers after commits, for many commits at once when they come fast."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from tenure.forks import begin_anew_after_fork

logger = logging.getLogger(__name__)

EVERY = 0.005
"""Seconds between two wakes at the least."""


class Waker:
    """Calls `wake` for queues that were noted; the first at once, later ones together.

    Coalescing is safe because a wake covers every job committed before it. A wake that fails is
    logged and no more: the jobs are committed, and sleepers find them at their poll floor. While
    nothing is to be sent a commit may wake by itself, and sleepers hear of it a little sooner.

    Threads: any. The one that wakes is made at the first note, and again in a forked child.
    """

    def __init__(self, wake: Callable[[list[str]], None]) -> None:
        self._wake = wake
        self._thread: threading.Thread | None = None
        self._not_before = 0.0
        self.after_fork()
        begin_anew_after_fork(self)

    def note(self, queues: Iterable[str]) -> None:
        """Jobs of these queues were committed."""
        with self._lock:
            self._noted.update(dict.fromkeys(queues))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tenure-waker", daemon=True)
                self._thread.start()
            # Not a thread that pauses: it looks again by itself, and producers come fast then.
            self._something.notify()

    def yields(self) -> bool:
        """Whether the next commit is to wake by itself; what is noted after it waits its turn."""
        with self._lock:
            now = time.monotonic()
            if self._noted or self._busy or now < self._not_before:
                return False
            self._not_before = now + EVERY
            return True

    def flush(self, seconds: float = 5.0) -> bool:
        """Wait until everything noted so far was sent; False when that takes too long."""
        with self._lock:
            return self._sent.wait_for(lambda: not self._noted and not self._busy, timeout=seconds)

    def close(self) -> None:
        """Send what is noted, then let the thread end. A later note starts another."""
        self.flush()
        with self._lock:
            thread, self._thread = self._thread, None
            self._not_before = 0.0
            self._something.notify()
            self._over.notify()
        if thread is not None:
            thread.join(1.0)

    def after_fork(self) -> None:
        # What the parent noted, the parent sends.
        self._lock = threading.Lock()
        self._something = threading.Condition(self._lock)
        self._sent = threading.Condition(self._lock)
        self._over = threading.Condition(self._lock)
        self._noted: dict[str, None] = {}
        self._busy = False
        self._not_before = 0.0
        self._thread = None

    def _run(self) -> None:
        me = threading.current_thread()
        while True:
            with self._lock:
                self._something.wait_for(lambda: self._noted or self._thread is not me)
                if self._thread is me:
                    pause = self._not_before - time.monotonic()
                    self._over.wait_for(lambda: self._thread is not me, timeout=pause)
                if self._thread is not me and not self._noted:
                    return
                queues, self._noted = list(self._noted), {}
                self._busy = True
            try:
                self._wake(queues)
            except Exception as error:
                logger.warning("sleepers on %s were not woken: %s", ", ".join(queues), error)
            with self._lock:
                self._busy = False
                self._not_before = time.monotonic() + EVERY
                self._sent.notify_all()
