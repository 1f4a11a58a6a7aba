"""What a runner's housekeeping does, over a connection of its own."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence

from tenure.backing import Plane
from tenure.claimer import Claimer
from tenure.link import Link
from tenure.values import Swept


class RunnerChores:
    """The chores of one runner, under the name that it claims with."""

    def __init__(
        self,
        open_plane: Callable[[], Plane],
        claimer: Claimer,
        queues: Sequence[str],
        slots: int,
    ) -> None:
        self._link = Link(open_plane)
        self._claimer = claimer
        self._queues = list(queues)
        self._info = {"host": socket.gethostname(), "pid": os.getpid(), "slots": slots}

    def sweep(self, limit: int) -> list[Swept]:
        return self._link.call(lambda plane: plane.sweep(self._claimer.worker_id, limit))

    def worker_seen(self) -> None:
        self._link.call(
            lambda plane: plane.worker_seen(self._claimer.worker_id, self._queues, self._info)
        )

    def maintain(self) -> list[str]:
        return self._link.call(lambda plane: plane.maintain())

    def give_back(self) -> None:
        """Nothing is asked while no connection was lost of late."""
        if self._claimer.has_retired:
            self._link.call(self._claimer.give_back_unknown)

    def close(self) -> None:
        self._link.close()
