"""Renews the leases of this process, so that a long handler keeps its job."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta

from tenure.backoff import pauses
from tenure.errors import InvalidArgument
from tenure.ledger import Ledger
from tenure.limits import MAX_LEASES
from tenure.standing import Standing
from tenure.values import LeaseRenewal, Renewal
from tenure.writing import about

logger = logging.getLogger(__name__)

BEATS_PER_LEASE = 3

Renew = Callable[[str, Sequence[tuple[int, int]], timedelta], list[Renewal]]
"""renew(worker_id, leases, lease_for), over a connection that nothing else uses."""


def check_period(period: timedelta | None, lease_for: timedelta) -> timedelta:
    """How often to renew: `period`, or a third of the lease; refused above half of it."""
    if period is None:
        return lease_for / BEATS_PER_LEASE
    if not timedelta(0) < period <= lease_for / 2:
        raise InvalidArgument(
            f"a heartbeat every {period.total_seconds():g} s cannot keep a lease of"
            f" {lease_for.total_seconds():g} s",
            hint=f"at most half of the lease; None is {lease_for.total_seconds() / 3:g} s",
        )
    return period


def answer_within(period: timedelta, lease_for: timedelta) -> timedelta:
    """How long a beat may wait for its answer, so that another can be sent in time."""
    return min(period, (lease_for - period) / 2)


class Heartbeat:
    """A thread that renews every lease of a ledger, all in one call.

    The period is that of the shortest lease it has: a third of that, or less when less was asked.

    It also learns from the answers: a lost lease and an accepted cancellation are noted in the
    ledger, where `Job.check` sees them. A beat that cannot be written is no loss: it is tried
    again, with a growing pause, until each lease's time is over by the monotonic clock.
    `deferred` says that the row was held by somebody while the token was current, so the lease
    may have lapsed and is not lost.

    The handlers cannot starve it unless they keep the interpreter's lock for longer than a
    lease, as a C call may: run such work in a process of its own, or ask for longer leases.
    """

    def __init__(self, ledger: Ledger, renew: Renew, *, period: timedelta) -> None:
        """`period` is the longest there is to be; see `check_period`."""
        self._ledger = ledger
        ledger.added = self._note
        self._shortest = period * BEATS_PER_LEASE
        self._bell = threading.Event()
        self._renew = renew
        self._period = period.total_seconds()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="tenure-heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self, seconds: float = 5.0) -> None:
        """Renew no more; waits a little for a call that is under way."""
        self._stopping = True
        self._bell.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def beat(self) -> None:
        """Renew every lease that is not lost, once. Raises when it could not be written."""
        groups: dict[tuple[str, timedelta], list[Standing]] = defaultdict(list)
        for standing in self._ledger.all():
            if standing.lost is None:
                groups[standing.lease.worker_id, standing.lease_for].append(standing)
        for (worker_id, lease_for), standings in groups.items():
            for first in range(0, len(standings), MAX_LEASES):
                self._beat(worker_id, lease_for, standings[first : first + MAX_LEASES])

    def _beat(self, worker_id: str, lease_for: timedelta, standings: list[Standing]) -> None:
        by_key = {standing.key: standing for standing in standings}
        sent = time.monotonic()
        for renewal in self._renew(worker_id, list(by_key), lease_for):
            standing = by_key[renewal.job_id, renewal.token]
            if renewal.outcome is LeaseRenewal.LOST:
                standing.lose("the database says that the token is not the current one")
                continue
            standing.proved(sent)
            if renewal.outcome is LeaseRenewal.DEFERRED:
                logger.info(
                    "the lease on job %d could not be renewed just now",
                    renewal.job_id,
                    extra=about(standing.lease),
                )
            if renewal.cancel_requested:
                standing.request_cancel()

    def _note(self, standings: Sequence[Standing]) -> None:
        shortest = min((standing.lease_for for standing in standings), default=self._shortest)
        if shortest < self._shortest:
            self._shortest = shortest
            self._bell.set()

    def _run(self) -> None:
        again = pauses(0.05, 2.0)
        while not self._stopping:
            if self._bell.wait(self._until_due()):
                self._bell.clear()
                continue
            try:
                self.beat()
            except Exception as error:
                logger.warning("the heartbeat could not renew: %s", error)
                self._bell.wait(min(next(again), self._period))
            else:
                again = pauses(0.05, 2.0)

    def _until_due(self) -> float:
        """Seconds until the next beat: no lease goes longer than its period without one."""
        now = time.monotonic()
        due = now + self._period
        for standing in self._ledger.all():
            if standing.lost is None:
                period = standing.lease_for.total_seconds() / BEATS_PER_LEASE
                due = min(due, standing.proved_at + min(self._period, period))
        return max(0.0, due - now)
