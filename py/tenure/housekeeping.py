"""Sweeps lapsed leases, in a thread that busy slots cannot stop."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol, TypeVar

from tenure.values import Swept

logger = logging.getLogger(__name__)

SWEEP_EVERY = timedelta(seconds=10)
SWEEP_LIMIT = 100
COST_FACTOR = 20
"""At most one twentieth of the time is spent sweeping."""
TIDY_EVERY = 1.0
"""Seconds between two looks at jobs that wait too long for their turn."""


T = TypeVar("T")


class Chores(Protocol):
    """What the thread does; each call may raise, and is tried again at its next turn."""

    def sweep(self, limit: int) -> list[Swept]: ...
    def worker_seen(self) -> None: ...
    def maintain(self) -> list[str]: ...
    def give_back(self) -> None:
        """Give back leases whose claim was never answered."""
        ...


class Housekeeping:
    """A thread that sweeps on a jittered cadence, and now and then does what else is due.

    Every runner has one, and any one is enough. A chore that fails is logged and stops nothing.
    """

    def __init__(
        self,
        chores: Chores,
        *,
        every: timedelta = SWEEP_EVERY,
        swept: Callable[[], None] = lambda: None,
        tidy: Callable[[], None] = lambda: None,
        seen_every: float = 60.0,
        maintain_every: float = 3600.0,
    ) -> None:
        """`swept` is called, on this thread, after a sweep that found something; `tidy` every
        second, and must not ask the database."""
        self._chores = chores
        self._every = every.total_seconds()
        self._swept = swept
        self._tidy = tidy
        self._seen = _Turn(seen_every)
        self._maintained = _Turn(maintain_every)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tenure-housekeeping", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self, seconds: float = 5.0) -> None:
        """Begin no further chore; waits a little for one that is under way."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        before = 0.0
        while True:
            if self._seen.is_due():
                self._do("worker_seen", self._chores.worker_seen)
            cost = self._sweep()
            self._do("give_back", self._chores.give_back)
            if self._maintained.is_due():
                self._maintain()
            # A process that was stopped in the middle measures hours: twice in a row it counts.
            pause = max(self._every * random.uniform(0.8, 1.2), COST_FACTOR * min(cost, before))
            before = cost
            if self._stops_within(pause):
                return

    def _stops_within(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._stopping.wait(min(left, TIDY_EVERY)):
                return True
            self._do("tidy", self._tidy)
        return False

    def _sweep(self) -> float:
        """Sweep until nothing is left, and return how long the longest took."""
        cost = 0.0
        while not self._stopping.is_set():
            began = time.monotonic()
            swept = self._do("sweep", lambda: self._chores.sweep(SWEEP_LIMIT))
            cost = max(cost, time.monotonic() - began)
            if swept:
                logger.info("swept %d lapsed leases", len(swept))
                self._swept()
            if swept is None or len(swept) < SWEEP_LIMIT:
                break
        return cost

    def _maintain(self) -> None:
        done = self._do("maintain", self._chores.maintain) or []
        if any(line.startswith("left the attempts") for line in done):
            self._maintained.soon()

    def _do(self, name: str, chore: Callable[[], T]) -> T | None:
        """What the chore returns; None when it failed."""
        try:
            return chore()
        except Exception as error:
            logger.warning("%s failed, and is tried again at its next turn: %s", name, error)
            return None


class _Turn:
    """Comes round every so many seconds, the first time at once."""

    def __init__(self, every: float) -> None:
        self._every = every
        self._next = 0.0

    def is_due(self) -> bool:
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + self._every * random.uniform(0.9, 1.1)
        return True

    def soon(self) -> None:
        """Come round at once, for what was left."""
        self._next = 0.0
