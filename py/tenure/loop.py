"""Claims for as long as it may, asleep while there is nothing to do."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from tenure.backoff import pauses
from tenure.claimer import Claimer
from tenure.sleeper import Found, Sleeper

logger = logging.getLogger("tenure.runner")


LOOK_AGAIN = 1.0
"""Seconds after which a claim is considered again although no slot was freed."""


class Loop:
    """The part of a runner that runs on one thread. An error is logged and waited out."""

    def __init__(self) -> None:
        self._room = threading.Event()
        self._stopping = threading.Event()
        self._sleeper: Sleeper | None = None
        self._asleep = False

    def run(self, claimer: Claimer, sleeper: Sleeper) -> None:
        """Claim until `stop` is called."""
        self._sleeper = sleeper
        waits = pauses(0.1, 10.0)
        while not self._stopping.is_set():
            self._room.clear()
            try:
                found = claimer.claim()
                if found is Found.NOTHING:
                    self._asleep = True
                    sleeper.sleep(claimer.claim, claimer.open_queues)
                elif found is Found.FULL and not self._stopping.is_set():
                    self._room.wait(LOOK_AGAIN)
                waits = pauses(0.1, 10.0)
            except Exception as error:
                logger.warning("worker %s cannot claim: %s", claimer.worker_id, error)
                self._stopping.wait(next(waits))
            finally:
                self._asleep = False

    def drain(
        self, claimer: Claimer, *, running: Callable[[], int], stopped: Callable[[], bool]
    ) -> None:
        """Claim until nothing is due and nothing runs, or it is stopped. Raises errors."""
        while not (self._stopping.is_set() or stopped()):
            self._room.clear()
            found = claimer.claim()
            if found is Found.NOTHING and running() == 0 and claimer.nothing_is_due():
                return
            if found is not Found.SOME:
                self._room.wait(0.05)

    def stop(self) -> None:
        """End soon. Any thread."""
        self._stopping.set()
        self._room.set()
        self.wake()

    def freed(self) -> None:
        """A group has room that had none when it was asked."""
        self._room.set()
        # Such a group is not claimed for while the loop sleeps beside others that have room.
        if self._asleep:
            self.wake()

    def wake(self) -> None:
        """There may be something to claim."""
        if self._sleeper is not None:
            self._sleeper.wake()
