"""Takes leases for the slots that have room, under a name that no other connection has had."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from tenure.backing import Plane
from tenure.identity import new_worker_id
from tenure.ledger import Ledger
from tenure.limits import MAX_LEASES
from tenure.link import Link
from tenure.sleeper import Found
from tenure.slots import Slots
from tenure.standing import Standing
from tenure.values import JobLease, Outcome, Verb

logger = logging.getLogger(__name__)

SOLO_WAITS = 1.0
"""Seconds after which jobs are no longer had in advance, so that a solo job finds a free slot."""


class Claimer:
    """One connection that claims; `claim` is for one thread.

    The connection's loss may swallow the answer to a claim, and a server that lost commits may
    mint a token twice. So every new connection has a new worker id, and what the old name holds
    without this process knowing is given back uncharged.
    """

    def __init__(
        self,
        open_plane: Callable[[], Plane],
        slots: Sequence[Slots],
        ledger: Ledger,
        *,
        lease_for: timedelta,
        patience: timedelta,
        clogged: Callable[[], bool] = lambda: False,
        told: Callable[[Sequence[Standing]], None] | None = None,
    ) -> None:
        """`patience` is how long a claim waits for its answer; `clogged` says that too many
        outcomes are still to be written for more to be claimed; `told` of each claim."""
        self._link = Link(open_plane, on_open=self._named)
        self._slots = slots
        self._by_queue = {queue: group for group in slots for queue in group.queues}
        self._ledger = ledger
        self._patience = patience
        self._clogged = clogged
        self._told = told
        self._lease_for = lease_for
        self._solo_since = time.monotonic()
        self._lock = threading.Lock()
        self._worker_id = new_worker_id()
        self._process = os.getpid()
        self._used = False
        self._retired: dict[str, float] = {}
        self._closed = False
        self.asked_at = time.monotonic()
        """The monotonic instant at which it was last asked to claim."""

    @property
    def worker_id(self) -> str:
        """The name of the present connection; its successor's will be another."""
        return self._worker_id

    def claim(self) -> Found:
        """Claim for every group with room; full also when no more is to be claimed."""
        self.asked_at = time.monotonic()
        if self._closed or self._clogged():
            return Found.FULL
        ahead = time.monotonic() - self._solo_since < SOLO_WAITS
        rooms = [(group, room) for group in self._slots if (room := group.room(ahead=ahead))]
        if not rooms:
            return Found.FULL
        # One statement while there is little to do: no answer can overfill any group.
        wanted = min(room for _, room in rooms)
        took = self._claim([group for group, _ in rooms], wanted)
        if took == wanted and len(rooms) > 1:
            for group, _ in rooms:
                if room := group.room(ahead=ahead):
                    self._claim([group], room)
        if took and not any(group.room() for group in self._slots):
            return Found.FULL
        return Found.SOME if took else Found.NOTHING

    def open_queues(self) -> list[str]:
        """The queues for which there is room."""
        return [queue for group in self._slots if group.room() for queue in group.queues]

    def nothing_is_due(self) -> bool:
        """Whether no job is waiting that could be claimed now: a read."""
        return self._link.call(
            lambda plane: plane.next_eligible_job_id(list(self._by_queue)) is None
        )

    def stop(self) -> None:
        """Claim no more: from now on every claim comes back full."""
        self._closed = True

    def close(self) -> None:
        self._link.close()

    @property
    def has_retired(self) -> bool:
        """Whether an earlier name may still be granted a lease that nobody hears of."""
        return bool(self._retired)

    def give_back_unknown(self, plane: Plane) -> None:
        """Give back what retired names hold without our knowing.

        Called again until such a lease would have lapsed by itself: the server may still be at
        work on a claim whose connection is gone.
        """
        now = time.monotonic()
        with self._lock:
            retired = list(self._retired.items())
        for name, until in retired:
            outcomes = [
                Outcome(job_id=held.job_id, token=held.token, verb=Verb.RELEASE, started=False)
                for held in plane.held(name)
                if not self._ledger.knows((held.job_id, held.token))
            ]
            for first in range(0, len(outcomes), MAX_LEASES):
                plane.settle(name, outcomes[first : first + MAX_LEASES])
            if outcomes:
                logger.warning("gave back %d leases whose claim was not answered", len(outcomes))
            if now >= until:
                with self._lock:
                    self._retired.pop(name, None)

    def _named(self, plane: Plane) -> None:
        plane.answer_within(self._patience)
        with self._lock:
            if self._process != os.getpid():
                # Made before a fork: every child of it would claim under the same name.
                self._process, self._worker_id = os.getpid(), new_worker_id()
            elif self._used:
                self._retired[self._worker_id] = time.monotonic() + self._lease_for.total_seconds()
                self._worker_id = new_worker_id()
            self._used = True
        self.give_back_unknown(plane)

    def _claim(self, groups: Sequence[Slots], most: int) -> int:
        """Claim up to `most`, and set them going; how many there were."""
        sent = 0.0
        # A solo job must not wait behind others, because its lapse is charged to it.
        solo = self._ledger.has_solo
        may_solo = not solo and all(group.idle for group in groups)
        if solo or may_solo:
            self._solo_since = time.monotonic()
        if solo:
            # What is claimed out of a batch beside a suspect costs nothing if that kills us.
            most = max(most, 2)

        def claim(plane: Plane) -> list[JobLease]:
            nonlocal sent
            sent = time.monotonic()
            return plane.claim(
                [queue for group in groups for queue in group.queues],
                self.worker_id,
                max_jobs=min(most, MAX_LEASES),
                lease_for=self._lease_for,
                solo=may_solo,
            )

        leases = self._link.call(claim)
        granted: dict[Slots, list[Standing]] = {}
        for lease in leases:
            standing = Standing(lease, sent=sent, lease_for=self._lease_for)
            granted.setdefault(self._by_queue[lease.queue], []).append(standing)
        for group, standings in granted.items():
            self._ledger.add(*standings)
            if self._told is not None:
                self._told(standings)
            group.add(standings)
        if 0 < len(leases) < most:
            # This thread is in no hurry, and would hold the interpreter until its next statement
            # is sent: half a millisecond that the handlers need not wait.
            time.sleep(0)
        return len(leases)
