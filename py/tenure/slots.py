"""How many jobs of a queue run at once, with the few that wait for their turn."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Protocol, TypeAlias

from tenure.standing import Key, Standing
from tenure.values import Outcome

BUFFER = 500
"""Jobs of one group that may wait in this process, however fast their handlers are."""

AHEAD = 0.1
"""Seconds' worth of jobs that are had in advance."""

FEWEST_AHEAD = 4
"""Fewer are not had in advance: a claim for the next one is quick enough."""

Ended: TypeAlias = Callable[[Standing, Outcome | None], None]
"""Told how a lease is to end; None when nothing is to be written."""


class Place(Protocol):
    """Something that handlers run in: threads, an event loop, processes."""

    def start(self, standing: Standing, ended: Ended) -> None:
        """Run the handler of this lease, and call `ended` exactly once when it has ended.

        Returns soon and raises nothing; `ended` may be called on any thread, also before this
        returns. Called again from inside `ended`, it must not nest ever deeper.
        """
        ...

    def close(self) -> None:
        """Start no more, and end what can be ended. What still runs has lost its lease."""
        ...


class Slots:
    """A number of places for jobs of one or more queues, and a buffer before them.

    The buffer holds what the handlers get through in a tenth of a second, as they did of late:
    so slow handlers never hold jobs that another worker could run, and fast ones never wait for
    a claim. A job that is suspected of killing its worker comes first, before those buffered:
    its next lapse is charged to it, so it must not wait.

    Threads: any.
    """

    def __init__(
        self,
        queues: Sequence[str],
        size: int,
        *,
        place_for: Callable[[Standing], Place],
        ended: Ended,
        freed: Callable[[], None],
        buffer: int = BUFFER,
    ) -> None:
        """`ended` is told of each job before the next one starts; `freed` is called when
        there is room again after `room` was asked and there was none."""
        self.queues = tuple(queues)
        self.size = size
        self._place_for = place_for
        self._told = ended
        self._freed = freed
        self._most_ahead = buffer
        self._lock = threading.Lock()
        self._buffer: deque[Standing] = deque()
        self._busy = 0
        self._ahead = 0
        self._refill_at: int | None = None
        self._closed = False
        self._ended = 0
        self._timed: dict[Key, Standing] = {}
        self._given_up = 0
        self._paced = (0, time.monotonic())
        self._ticked = (0, 0)

    @property
    def busy(self) -> int:
        """How many jobs run."""
        return self._busy

    @property
    def waiting(self) -> int:
        """How many jobs wait for their turn."""
        return len(self._buffer)

    @property
    def idle(self) -> int:
        """How many jobs would start at once."""
        return 0 if self._closed else max(0, self.size - self._busy - len(self._buffer))

    def room(self, *, ahead: bool = True) -> int:
        """How many jobs may be claimed now; without `ahead`, only what would start at once.

        Never 1 unless that one starts at once: a job claimed alone is charged for its lapse,
        so it must not wait behind others.
        """
        with self._lock:
            if self._closed:
                return 0
            self._learn_pace()
            idle = self.idle
            wanted = self._ahead if ahead else 0
            if idle > 0:
                room = idle + wanted
            elif 2 * len(self._buffer) <= wanted:
                room = wanted - len(self._buffer)
            else:
                room = 0
            if room == 0:
                self._refill_at = wanted // 2 if wanted else -1
            return room

    def add(self, standings: Sequence[Standing]) -> None:
        """Take what was claimed, and start what there is a place for."""
        with self._lock:
            self._buffer.extend(s for s in standings if not s.lease.solo)
            self._buffer.extendleft(s for s in standings if s.lease.solo)
        while (standing := self._next()) is not None:
            self._start(standing)

    def take_back(self) -> list[Standing]:
        """What waits although the handlers do not get round to it, to be given back.

        To be called once a second: of what has waited since the last call, as many as were
        started in between may stay.
        """
        with self._lock:
            started = self._ended + self._busy
            waited, before = self._ticked
            stay = started - before
            excess = []
            if waited > stay:
                excess = list(islice(self._buffer, stay, None))
                for _ in excess:
                    self._buffer.pop()
                self._ahead = 0
            self._ticked = len(self._buffer), started
        return [standing for standing in excess if standing.withdraw()]

    def give_up_overdue(self) -> list[Standing]:
        """Free the slots of handlers that go on although their job's timeout is over.

        To be called now and then. Their leases have lapsed, and nothing they come to is written;
        but a thread cannot be stopped, so what it holds is held until it ends. So that such
        handlers do not pile up without bound, no more are given up at a time than there are
        slots: from then on they keep theirs.
        """
        with self._lock:
            now = time.monotonic()
            overdue = [standing for standing in self._timed.values() if now >= standing.end]
            overdue = overdue[: self.size - self._given_up]
            self._given_up += len(overdue)
            for standing in overdue:
                del self._timed[standing.key]
        for standing in overdue:
            self._free(standing, None)
        return overdue

    def close(self) -> None:
        """Start no more. What waits stays in the ledger, to be given back."""
        with self._lock:
            self._closed = True
            self._buffer.clear()

    def _start(self, standing: Standing) -> None:
        if standing.lease.timeout is not None:
            with self._lock:
                self._timed[standing.key] = standing
        self._place_for(standing).start(standing, self._job_ended)

    def _next(self) -> Standing | None:
        with self._lock:
            if self._closed or self._busy >= self.size or not self._buffer:
                return None
            self._busy += 1
            return self._buffer.popleft()

    def _job_ended(self, standing: Standing, outcome: Outcome | None) -> None:
        if standing.lease.timeout is not None:
            with self._lock:
                if self._timed.pop(standing.key, None) is None:
                    self._given_up -= 1
                    return
        self._free(standing, outcome)

    def _free(self, standing: Standing, outcome: Outcome | None) -> None:
        self._told(standing, outcome)
        with self._lock:
            self._busy -= 1
            self._ended += 1
            following = None
            if self._buffer and not self._closed and self._busy < self.size:
                self._busy += 1
                following = self._buffer.popleft()
            rings = self._refill_at is not None and (
                self._busy < self.size or len(self._buffer) <= self._refill_at
            )
            if rings:
                self._refill_at = None
        if rings:
            self._freed()
        if following is not None:
            self._start(following)

    def _learn_pace(self) -> None:
        """Reckon how many jobs to have in advance, from how many ended since the last time."""
        before, since = self._paced
        now = time.monotonic()
        ended = self._ended - before
        if self._busy == 0 and not self._buffer and ended == 0:
            self._ahead = 0
        elif ended >= self.size or now - since >= AHEAD:
            ahead = int(ended / max(now - since, 1e-6) * AHEAD)
            self._ahead = 0 if ahead < FEWEST_AHEAD else min(ahead, self._most_ahead)
        else:
            return
        self._paced = self._ended, now
