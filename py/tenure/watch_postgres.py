"""Learns from PostgreSQL that jobs have ended, without ever missing one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection

from tenure.errors import ServerUnavailable
from tenure.limits import POLL_FLOOR
from tenure.link import BROKEN
from tenure.sleeper_postgres import POLL_WHILE_DEAF, Ear
from tenure.waits import Look

CLASSES = 32
"""Jobs with the same id modulo this share a key of `wait_begin`."""

_FIRST_PAUSE = 0.004
_FLOOR = POLL_FLOOR.total_seconds()


class PostgresWatch:
    """The protocol of `wait_begin`, which is the sleeper's: show the keys, read until every
    writer has ended that may not have seen them, read once more, and only then rely on being
    told. While the listener is down, or the keys cannot be had, everything is read every second.
    """

    def __init__(
        self,
        listen: Callable[[Callable[[str], None], Callable[[], None]], Ear],
        *,
        told: Callable[[int], None],
        changed: Callable[[], None],
    ) -> None:
        """`listen` makes the listener, given what to call with a payload, and when it comes
        up or goes down."""
        self._told = told
        self._shown: frozenset[int] = frozenset()
        self._horizon = 0
        self._settled = False
        self._generation = 0
        self._pause = _FIRST_PAUSE
        self._ear = listen(self.heard, changed)
        self._ear.start()

    def look(self, waited: Collection[int]) -> Look:
        try:
            return self._look(waited)
        except BROKEN:
            self._shown = frozenset()
            return Look(at_all=True, within=POLL_WHILE_DEAF)

    def rest(self) -> None:
        if self._shown:
            self._shown = frozenset()
            self._ear.ask(lambda signals: signals.sleep_end())

    def close(self) -> None:
        self._ear.close()

    def heard(self, payload: str) -> None:
        """Take in a notification; what is not understood is not for us."""
        if payload.startswith("d"):
            with contextlib.suppress(ValueError):
                self._told(int(payload[1:]))

    def _look(self, waited: Collection[int]) -> Look:
        # Before the question whether it is up: a connection that comes in between is a new one.
        generation = self._ear.generation
        if not self._ear.up:
            raise ServerUnavailable("the listener has no connection")
        one_of_each = {job_id % CLASSES: job_id for job_id in waited}
        if generation != self._generation or not one_of_each.keys() <= self._shown:
            self._show(one_of_each, generation)
        elif self._settled:
            return Look(at_all=False, within=_FLOOR)
        # Read after this answer: then whatever a writer left that has not seen the keys is read.
        self._settled = self._ear.ask(lambda signals: signals.sleep_settled(self._horizon))
        if self._ear.generation != generation:
            return Look(at_all=True, within=0.0)
        if self._settled:
            return Look(at_all=True, within=_FLOOR)
        pause, self._pause = self._pause, min(1.0, self._pause * 2)
        return Look(at_all=True, within=pause)

    def _show(self, one_of_each: dict[int, int], generation: int) -> None:
        self._shown = frozenset()
        horizon = self._ear.ask(lambda signals: signals.wait_begin(list(one_of_each.values())))
        if horizon is None:
            raise ServerUnavailable("the keys cannot be had")
        self._shown = frozenset(one_of_each)
        self._horizon = horizon
        self._generation = generation
        self._pause = _FIRST_PAUSE
