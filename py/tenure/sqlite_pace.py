"""How often a SQLite file is looked at for commits."""

from __future__ import annotations

import time

SHORTEST, LONGEST = 0.001, 0.1
"""Seconds."""

SHARE = 1 / 64
"""Of the time for which nothing happened: what comes is found that much later."""


class Pace:
    """Pauses between looks that grow with the time for which nothing happened.

    So a file in use is looked at a thousand times a second, one that was quiet for a second 64
    times, and an idle one 10 times.
    """

    def __init__(self) -> None:
        self.moved()

    def moved(self) -> None:
        """Something happened."""
        self._since = time.monotonic()

    def pause(self) -> float:
        """Seconds until the next look."""
        return min(LONGEST, max(SHORTEST, SHARE * (time.monotonic() - self._since)))
