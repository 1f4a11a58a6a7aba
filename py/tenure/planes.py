"""A small pool of control planes for the calls of one process."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from tenure.backing import Plane
from tenure.forks import begin_anew_after_fork
from tenure.link import BROKEN

IDLE_KEPT = 32
"""More than this many idle planes are closed instead of kept."""
IDLE_FOR = 30.0
"""Seconds after which a plane that nobody needed is closed, at the next call of the pool."""


class Planes:
    """Lends a plane to one caller at a time, and opens as many as there are callers.

    One whose server hung up while it was idle is thrown away before it is lent, so that the
    caller never meets it. None crosses a fork. Threads: any.
    """

    def __init__(self, open_plane: Callable[[], Plane]) -> None:
        self._open_plane = open_plane
        # With the moment from which on nobody needed it; the longest idle first.
        self._idle: list[tuple[float, Plane]] = []
        self._lock = threading.Lock()
        begin_anew_after_fork(self)

    @contextlib.contextmanager
    def lent(self) -> Iterator[Plane]:
        """A plane for the block; closed after an error that leaves its connection in doubt."""
        plane = self._taken() or self._open_plane()
        try:
            yield plane
        except BROKEN:
            plane.close()
            raise
        except Exception:
            self._give_back(plane)
            raise
        except BaseException:
            plane.close()
            raise
        self._give_back(plane)

    def close(self) -> None:
        """Close what is idle. The pool can be used again."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, plane in idle:
            plane.close()

    def after_fork(self) -> None:
        # To close the parent's planes here would end the parent's sessions.
        _inherited.extend(self._idle)
        self._idle = []
        self._lock = threading.Lock()

    def _taken(self) -> Plane | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                _, plane = self._idle.pop()
            if not plane.stale:
                return plane
            plane.close()

    def _give_back(self, plane: Plane) -> None:
        now = time.monotonic()
        surplus = []
        with self._lock:
            # The latest is lent first, so the first is one that those before it did without.
            self._idle.append((now, plane))
            if len(self._idle) > IDLE_KEPT or now - self._idle[0][0] > IDLE_FOR:
                surplus.append(self._idle.pop(0)[1])
        for plane in surplus:
            plane.close()


_inherited: list[tuple[float, Plane]] = []
