"""How an idle runner waits for work without asking for it all the time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from enum import Enum
from typing import Protocol, TypeAlias


class Found(Enum):
    """What one claim came to."""

    NOTHING = "nothing"
    """No job was to be had."""
    SOME = "some"
    """Jobs were had, and there is room for more."""
    FULL = "full"
    """There is no room for more, or no wish for it: do not sleep."""


Claim: TypeAlias = Callable[[], Found]
Queues: TypeAlias = Callable[[], Sequence[str]]
"""The queues that a claim would ask for just now."""


class Sleeper(Protocol):
    """Ends a runner's idleness as soon as there may be work.

    One thread sleeps; any thread may wake it.
    """

    def sleep(self, claim: Claim, queues: Queues) -> None:
        """Claim whenever there may be work, until a claim comes back full.

        Raises what `claim` raises; the runner then sleeps anew.
        """
        ...

    def wake(self) -> None:
        """Make the sleeper claim again, now."""
        ...

    @property
    def listening(self) -> bool:
        """Whether commits wake it; else it polls."""
        ...

    def close(self) -> None: ...


def seconds_until_due(
    queues: Queues, next_due: Callable[[Sequence[str]], timedelta | None]
) -> float:
    """How long until a claim may find something; infinite while nothing waits."""
    names = queues()
    if not names:
        return 0.0  # there is no room any more, as a claim will say
    due_in = next_due(names)
    return float("inf") if due_in is None else due_in.total_seconds()


class Bell:
    """Rung by any thread, heard once by the one that waits."""

    def __init__(self) -> None:
        self._rung = threading.Event()

    def ring(self) -> None:
        self._rung.set()

    def wait(self, seconds: float) -> bool:
        """True when it was rung since it was last heard; False when the time is over."""
        if not self._rung.wait(max(0.0, seconds)):
            return False
        # A ring just before this is heard now: whoever waits looks for work after this, and what
        # is rung for was committed before.
        self._rung.clear()
        return True
