"""The cadence of chores."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

import pytest

from tenure.housekeeping import Housekeeping
from tests.runner.waiting import comes

OFTEN = timedelta(milliseconds=20)


class Chores:
    def __init__(self, sweep: Any) -> None:
        self._sweep = sweep

    def sweep(self, limit: int) -> list[Any]:
        self._sweep()
        return []

    def worker_seen(self) -> None: ...
    def maintain(self) -> list[str]:
        return []

    def give_back(self) -> None: ...


def test_a_process_that_was_stopped_inside_a_sweep_sweeps_on_when_it_goes_on() -> None:
    """The sweep seems to have cost hours then, and twenty times that is not waited for."""
    sweeps = iter(range(1000))
    third = threading.Event()
    pause = threading.Event()

    def sweep() -> None:
        number = next(sweeps)
        if number == 1:
            pause.wait(1.0)
        if number == 2:
            third.set()

    housekeeping = Housekeeping(Chores(sweep), every=OFTEN)
    housekeeping.start()
    try:
        comes(third, "it swept again")
    finally:
        housekeeping.stop()


def test_sweeps_that_are_costly_again_and_again_come_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []

    def stops_within(seconds: float) -> bool:
        pauses.append(seconds)
        return len(pauses) == 3

    housekeeping = Housekeeping(Chores(lambda: time.sleep(0.05)), every=OFTEN)
    monkeypatch.setattr(housekeeping, "_stops_within", stops_within)

    housekeeping._run()

    assert pauses[0] < 0.05
    assert min(pauses[1:]) >= 20 * 0.05


def test_upkeep_that_left_something_goes_on_at_the_next_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """O32: an hour later there would be more to delete than one call does."""
    said = [["left the attempts of a day for the next call"], ["dropped a day"]]
    calls: list[int] = []
    rounds = 0

    def maintain() -> list[str]:
        calls.append(rounds)
        return said[len(calls) - 1]

    def stops_within(seconds: float) -> bool:
        nonlocal rounds
        rounds += 1
        return rounds == 4

    chores = Chores(lambda: None)
    monkeypatch.setattr(chores, "maintain", maintain)
    housekeeping = Housekeeping(chores, every=OFTEN)
    monkeypatch.setattr(housekeeping, "_stops_within", stops_within)

    housekeeping._run()

    assert calls == [0, 1]
