"""The planes that the calls of one process share: how many stay open, and for how long."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace
from typing import cast

import pytest

from tenure import planes
from tenure.backing import Plane
from tenure.planes import Planes


class Opened:
    stale = False
    closed = False

    def close(self) -> None:
        self.closed = True


class Pool(Planes):
    def __init__(self) -> None:
        self.opened: list[Opened] = []
        super().__init__(self.open)

    def open(self) -> Plane:
        self.opened.append(Opened())
        return cast(Plane, self.opened[-1])

    def lend(self, callers: int) -> None:
        """To so many at once."""
        with ExitStack() as stack:
            for _ in range(callers):
                stack.enter_context(self.lent())

    @property
    def kept(self) -> int:
        return sum(not plane.closed for plane in self.opened)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("tenure.planes.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_as_many_callers_as_before_open_nothing(clock: list[float]) -> None:
    pool = Pool()
    for _ in range(10):
        pool.lend(20)

    assert len(pool.opened) == pool.kept == 20


def test_a_plane_that_nobody_needed_for_a_while_is_closed(clock: list[float]) -> None:
    pool = Pool()
    pool.lend(5)
    for _ in range(10):
        pool.lend(2)
    assert pool.kept == 5

    clock[0] += planes.IDLE_FOR + 1
    for _ in range(10):
        pool.lend(2)

    assert pool.kept == 2
    assert len(pool.opened) == 5


def test_planes_that_are_needed_now_and_then_stay(clock: list[float]) -> None:
    pool = Pool()
    for _ in range(10):
        pool.lend(5)
        clock[0] += planes.IDLE_FOR / 2
        pool.lend(1)

    assert len(pool.opened) == pool.kept == 5


def test_no_more_than_a_bound_are_kept(clock: list[float]) -> None:
    pool = Pool()
    pool.lend(planes.IDLE_KEPT + 7)

    assert pool.kept == planes.IDLE_KEPT
    pool.close()
    assert pool.kept == 0
