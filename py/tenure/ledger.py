"""The leases that this process has."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from tenure.standing import Key, Standing

MOST_GIVEN_UP = 10_000
"""Lost leases that are remembered; each is swept soon after its loss."""


class Ledger:
    """The leases of this process, by (job_id, token). Threads: any."""

    def __init__(self) -> None:
        self._standings: dict[Key, Standing] = {}
        self._given_up: dict[Key, None] = {}
        self._solo = 0
        self._changed = threading.Condition()
        self.added: Callable[[Sequence[Standing]], None] | None = None
        """Told of what was added, on the thread that adds."""
        self.no_solo: Callable[[], None] | None = None
        """Told when the last solo job is gone, so that another may come."""

    def __len__(self) -> int:
        return len(self._standings)

    def add(self, *standings: Standing) -> None:
        with self._changed:
            for standing in standings:
                self._standings[standing.key] = standing
                self._solo += standing.lease.solo
        if self.added is not None:
            self.added(standings)

    def drop(self, *standings: Standing) -> None:
        """Renew these leases no longer. Dropping twice is fine."""
        with self._changed:
            before = self._solo
            for standing in standings:
                if self._standings.pop(standing.key, None) is not None:
                    self._solo -= standing.lease.solo
                    if standing.started and standing.lost is not None:
                        self._give_up(standing.key)
            if not self._standings:
                self._changed.notify_all()
            no_solo = self._solo < before and self._solo == 0
        if no_solo and self.no_solo is not None:
            self.no_solo()

    def all(self) -> list[Standing]:
        """A snapshot, in the order in which the leases were granted."""
        with self._changed:
            return list(self._standings.values())

    def knows(self, key: Key) -> bool:
        """Whether the lease is here, or was given up as lost after its handler had been entered.

        The database may still have such a lease under this name, until it is swept.
        """
        with self._changed:
            return key in self._standings or key in self._given_up

    def request_cancel(self, job_id: int) -> None:
        """Tell whoever runs the job in this process, if anybody does."""
        for standing in self.all():
            if standing.lease.job_id == job_id:
                standing.request_cancel()

    def _give_up(self, key: Key) -> None:
        self._given_up[key] = None
        if len(self._given_up) > MOST_GIVEN_UP:
            del self._given_up[next(iter(self._given_up))]

    @property
    def has_solo(self) -> bool:
        return self._solo > 0

    def wait_empty(self, seconds: float) -> bool:
        """Wait until no lease is left; False when the time is over first."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._standings, timeout=max(0.0, seconds))
