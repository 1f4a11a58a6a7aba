"""How many jobs run, how many are had in advance, and in which order they start."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from tenure.slots import BUFFER, FEWEST_AHEAD, Ended, Slots
from tenure.standing import Standing
from tenure.threads import Threads
from tenure.values import Outcome
from tests.runner.fakes import Clock, lease
from tests.runner.waiting import comes, eventually

HALF_A_MINUTE = timedelta(seconds=30)


def standing(job_id: int, **changes: Any) -> Standing:
    return Standing(lease(job_id=job_id, **changes), sent=1e9, lease_for=HALF_A_MINUTE)


class Stage:
    """A place where jobs end when the test says so."""

    def __init__(self) -> None:
        self.running: dict[int, tuple[Standing, Ended]] = {}
        self.started: list[int] = []

    def start(self, standing: Standing, ended: Ended) -> None:
        self.started.append(standing.lease.job_id)
        self.running[standing.lease.job_id] = (standing, ended)

    def end(self, *job_ids: int) -> None:
        for job_id in job_ids or list(self.running):
            standing, ended = self.running.pop(job_id)
            ended(standing, None)

    def close(self) -> None: ...


class Bench:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = Clock()
        monkeypatch.setattr("tenure.slots.time.monotonic", self.clock)
        self.stage = Stage()
        self.ended: list[int] = []
        self.freed = 0

    def slots(self, size: int, **options: Any) -> Slots:
        return Slots(
            ["q"],
            size,
            place_for=lambda standing: self.stage,
            ended=lambda standing, outcome: self.ended.append(standing.lease.job_id),
            freed=self._free,
            **options,
        )

    def _free(self) -> None:
        self.freed += 1

    def pass_through(self, slots: Slots, jobs: int, *, seconds: float) -> None:
        """Have so many jobs run, in so much time."""
        for _ in range(jobs):
            slots.add([standing(-1)])
            self.stage.end()
        self.clock.now += seconds


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def test_at_first_only_what_would_start_at_once_is_claimed(bench: Bench) -> None:
    assert bench.slots(3).room() == 3


def test_quick_handlers_get_a_tenth_of_a_second_of_jobs_in_advance(bench: Bench) -> None:
    slots = bench.slots(3)
    slots.room()

    bench.pass_through(slots, 50, seconds=0.25)

    assert slots.room() == 3 + 20


def test_slow_handlers_get_none(bench: Bench) -> None:
    slots = bench.slots(3)
    slots.room()

    bench.pass_through(slots, 3, seconds=0.11 * 3 / FEWEST_AHEAD)

    assert slots.room() == 3


def test_never_more_than_the_buffer_holds(bench: Bench) -> None:
    for options, most in [({}, BUFFER), ({"buffer": 7}, 7), ({"buffer": 0}, 0)]:
        slots = bench.slots(1, **options)
        slots.room()
        bench.pass_through(slots, 5000, seconds=0.01)

        assert slots.room() == 1 + most


def test_what_is_had_in_advance_is_never_a_single_job(bench: Bench) -> None:
    """It would be charged for a lapse, although it waits behind others."""
    rooms = set()
    for a_second in (16, 32, 64, 128):
        slots = bench.slots(1)
        slots.room()
        bench.pass_through(slots, a_second, seconds=1)
        slots.add([standing(job_id) for job_id in range(slots.room())])
        while slots.waiting:
            bench.clock.now += 1 / a_second
            bench.stage.end()
            rooms.add(slots.room())

    assert 0 in rooms
    assert 1 not in rooms


def test_no_more_run_than_there_are_slots_and_each_end_starts_the_next(bench: Bench) -> None:
    slots = bench.slots(2)
    slots.add([standing(job_id) for job_id in range(4)])
    assert bench.stage.started == [0, 1]
    assert (slots.busy, slots.waiting, slots.room()) == (2, 2, 0)

    bench.stage.end(1)

    assert bench.stage.started == [0, 1, 2]
    assert bench.ended == [1]


def test_a_suspect_comes_first(bench: Bench) -> None:
    slots = bench.slots(1)

    slots.add([standing(1), standing(2), standing(3, solo=True)])

    assert bench.stage.started == [3]


def test_whoever_was_told_that_there_is_no_room_is_told_once_when_there_is(bench: Bench) -> None:
    slots = bench.slots(2)
    slots.add([standing(1), standing(2)])
    assert slots.room() == 0

    bench.stage.end()

    assert bench.freed == 1


def test_a_buffer_is_filled_again_when_half_of_it_is_left(bench: Bench) -> None:
    slots = bench.slots(1)
    slots.room()
    bench.pass_through(slots, 128, seconds=1)
    slots.add([standing(job_id) for job_id in range(slots.room())])
    assert (slots.waiting, slots.room()) == (12, 0)

    for _ in range(6):
        assert bench.freed == 0
        bench.clock.now += 1 / 128
        bench.stage.end()

    assert (slots.waiting, bench.freed, slots.room()) == (6, 1, 6)


def test_what_waits_behind_slow_handlers_is_given_back_and_not_started(bench: Bench) -> None:
    slots = bench.slots(1)
    waiting = [standing(job_id) for job_id in range(5)]
    slots.add(waiting)
    assert slots.take_back() == [], "it has not waited long"

    given_back = slots.take_back()

    assert given_back == waiting[1:]
    assert not any(standing.start() for standing in given_back)
    bench.stage.end()
    assert bench.stage.started == [0]


def test_as_much_may_wait_as_was_started_of_late(bench: Bench) -> None:
    slots = bench.slots(1)
    slots.add([standing(job_id) for job_id in range(8)])
    slots.take_back()
    bench.stage.end(0)
    bench.stage.end(1)

    given_back = [standing.lease.job_id for standing in slots.take_back()]

    assert given_back == [5, 6, 7]
    assert slots.waiting == 2


def test_nothing_starts_once_it_is_closed(bench: Bench) -> None:
    slots = bench.slots(1)
    slots.add([standing(1), standing(2)])

    slots.close()
    bench.stage.end()
    slots.add([standing(3)])

    assert bench.stage.started == [1]
    assert slots.room() == 0


def test_threads_run_side_by_side_and_are_used_again() -> None:
    together = threading.Barrier(3)
    names: list[str] = []

    def execute(standing: Standing) -> Outcome | None:
        names.append(threading.current_thread().name)
        if standing.lease.job_id < 3:
            together.wait(15)
        return None

    threads = Threads(execute)
    done = threading.Semaphore(0)
    for job_id in range(3):
        threads.start(standing(job_id), lambda standing, outcome: done.release())
    for _ in range(3):
        assert done.acquire(timeout=15)
    for job_id in range(3, 6):
        threads.start(standing(job_id), lambda standing, outcome: done.release())
        assert done.acquire(timeout=15)

    assert len(names) == 6
    assert len(set(names)) == 3
    threads.close()
    eventually(
        lambda: not {thread.name for thread in threading.enumerate()} & set(names), "they ended"
    )


def raises(standing: Standing, outcome: Outcome | None) -> None:
    raise RuntimeError


def test_a_thread_outlives_what_it_runs(caplog: pytest.LogCaptureFixture) -> None:
    ended = threading.Event()

    def execute(standing: Standing) -> Outcome | None:
        raise SystemExit

    threads = Threads(execute)
    threads.start(standing(1), raises)
    threads.start(standing(2), lambda standing, outcome: ended.set())

    comes(ended, "the next job ended")
    threads.close()
    assert "what a worker let through" in caplog.text
