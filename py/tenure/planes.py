"""A small pool of control planes for the calls of one process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from tenure.backing import Plane
from tenure.forks import begin_anew_after_fork
from tenure.link import BROKEN

IDLE_KEPT = 4
"""More than this many idle planes are closed instead of kept."""


class Planes:
    """Lends a plane to one caller at a time, and opens as many as there are callers.

    One whose server hung up while it was idle is thrown away before it is lent, so that the
    caller never meets it. None crosses a fork. Threads: any.
    """

    def __init__(self, open_plane: Callable[[], Plane]) -> None:
        self._open_plane = open_plane
        self._idle: list[Plane] = []
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
        for plane in idle:
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
                plane = self._idle.pop()
            if not plane.stale:
                return plane
            plane.close()

    def _give_back(self, plane: Plane) -> None:
        with self._lock:
            if len(self._idle) < IDLE_KEPT:
                self._idle.append(plane)
                return
        plane.close()


_inherited: list[Plane] = []
