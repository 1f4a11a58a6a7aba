"""Sleeps until PostgreSQL notifies, without ever missing a job."""

from __future__ import annotations

import contextlib
import logging
import random
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol, TypeVar

from tenure.link import BROKEN
from tenure.postgres_signals import PostgresSignals
from tenure.sleeper import Bell, Claim, Found, Queues, seconds_until_due

logger = logging.getLogger(__name__)

POLL_WHILE_DEAF = 1.0
"""Seconds between claims while no notification can come."""

MANY_QUEUES = 32
"""On more queues than this a sleeper shows one key for all of them."""

T = TypeVar("T")


class Ear(Protocol):
    """The part of `Listener` that the sleeper needs."""

    @property
    def up(self) -> bool: ...
    @property
    def generation(self) -> int: ...
    def start(self) -> None: ...
    def ask(self, use: Callable[[PostgresSignals], T]) -> T: ...
    def close(self) -> None: ...


class PostgresSleeper:
    """The protocol by which no wake-up is lost.

    A sleeper shows that it sleeps (`sleep_begin`), and a producer that sees it notifies. A
    producer that looked before may still be in its transaction; so the sleeper claims again and
    again, with growing pauses, until all such transactions have ended (`sleep_settled`). Only a
    claim that was begun after that and found nothing proves that there is nothing to do: then
    it sleeps, until a notification, the next due time, or the poll floor.

    While the listener is down, or the keys cannot be had, it claims every second instead. A new
    connection means the whole protocol again.
    """

    def __init__(
        self,
        listen: Callable[[Callable[[str], None], Callable[[], None]], Ear],
        queues: Sequence[str],
        *,
        poll_floor: timedelta,
        on_cancel: Callable[[int], None],
    ) -> None:
        """`listen` makes the listener, given what to call with a payload, and when it comes
        up or goes down; `on_cancel` is given the id of a job whose cancellation was accepted."""
        self._queues = list(queues)
        self._poll_floor = poll_floor.total_seconds()
        self._on_cancel = on_cancel
        self._bell = Bell()
        self._keys: frozenset[str] | None = None
        self._empty_wakes = 0
        self._generation = 0
        self._ear = listen(self.heard, self._bell.ring)
        self._ear.start()

    def sleep(self, claim: Claim, queues: Queues) -> None:
        while True:
            self._generation = self._ear.generation
            try:
                self._learn_keys()
                self._sleep(claim, queues)
                return
            except _Deaf:
                if self._ear.up and self._ear.generation != self._generation:
                    continue
                if _claim_all(claim)[0] is Found.FULL:
                    return
                self._bell.wait(min(POLL_WHILE_DEAF, self._poll_floor))

    def wake(self) -> None:
        self._bell.ring()

    @property
    def listening(self) -> bool:
        return self._ear.up

    def close(self) -> None:
        self._ear.close()
        self._bell.ring()

    def heard(self, payload: str) -> None:
        """Take in a notification; what is not understood is not for us."""
        if payload.startswith("c"):
            with contextlib.suppress(ValueError):
                self._on_cancel(int(payload[1:]))
        elif payload.startswith("q") and (
            payload == "q*" or self._keys is None or payload in self._keys
        ):
            self._bell.ring()

    def _sleep(self, claim: Claim, queues: Queues) -> None:
        """The protocol once, on one connection, until a claim comes back full."""
        horizon = self._ask(lambda signals: signals.sleep_begin(self._queues))
        if horizon is None:
            raise _Deaf
        try:
            if self._settle(claim, horizon):
                self._doze(claim, queues)
        finally:
            with contextlib.suppress(_Deaf):
                self._ask(lambda signals: signals.sleep_end())

    def _settle(self, claim: Claim, horizon: int) -> bool:
        """Claim until one begun after the horizon settled finds nothing; False when full."""
        settled = False
        pause = 0.004
        while True:
            settled = settled or self._ask(lambda signals: signals.sleep_settled(horizon))
            found = claim()
            if found is Found.FULL:
                return False
            if found is Found.NOTHING:
                if settled:
                    return True
                self._bell.wait(pause)
                pause = min(1.0, pause * 2)

    def _doze(self, claim: Claim, queues: Queues) -> None:
        """Claim after each notification, at each due time and at the poll floor."""
        skipped = 0
        due_in = self._due_in(queues)
        while True:
            due_at = time.monotonic() + due_in
            if due_in <= 0:
                # Somebody holds a due row, and may yet give it back without a notification.
                skipped += 1
                due_at = time.monotonic() + min(1.0, 0.004 * 2 ** min(skipped, 8))
            else:
                skipped = 0
            while True:
                rung = self._bell.wait(min(due_at - time.monotonic(), self._poll_floor))
                self._stay()
                if rung and self._empty_wakes:
                    self._spread()
                    # Others were quicker the last time, and then a claim writes for nothing.
                    due_in = self._due_in(queues)
                    if due_in > 0:
                        self._empty_wakes += 1
                        break
                last, took = _claim_all(claim)
                if last is Found.FULL:
                    return
                self._empty_wakes = self._empty_wakes + 1 if rung and not took else 0
                if rung or took or time.monotonic() >= due_at:
                    due_in = self._due_in(queues)
                    break

    def _due_in(self, queues: Queues) -> float:
        return seconds_until_due(
            queues, lambda names: self._ask(lambda signals: signals.next_due(names))
        )

    def _spread(self) -> None:
        """Come a little later, the more often others were quicker: many may wake for one job."""
        time.sleep(random.uniform(0, 0.001 * min(self._empty_wakes, 10)))

    def _learn_keys(self) -> None:
        if self._keys is None and len(self._queues) <= MANY_QUEUES:
            self._keys = self._ask(
                lambda signals: frozenset(f"q{signals.queue_key(q)}" for q in self._queues)
            )

    def _ask(self, use: Callable[[PostgresSignals], T]) -> T:
        try:
            answer = self._ear.ask(use)
        except BROKEN as error:
            logger.debug("the listener could not be asked: %s", error)
            raise _Deaf from None
        self._stay()
        return answer

    def _stay(self) -> None:
        """Go on only on the connection that the protocol was begun on: the keys are its."""
        if not self._ear.up or self._ear.generation != self._generation:
            raise _Deaf


class _Deaf(Exception):
    """No notification can come just now."""


def _claim_all(claim: Claim) -> tuple[Found, bool]:
    """Claim until nothing is left or there is no room; the last answer, and whether any took."""
    took = False
    while (found := claim()) is Found.SOME:
        took = True
    return found, took
