"""The protocol by which no end of a job is missed, one step at a time."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tenure.errors import ServerUnavailable
from tenure.waits import Look
from tenure.watch_postgres import PostgresWatch
from tenure.watch_sqlite import SqliteWatch

FLOOR = 30.0


class Signals:
    """The listener's connection: what it was asked, and what it answers."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.horizon: int | None = 100
        self.settled = False

    def wait_begin(self, job_ids: list[int]) -> int | None:
        self.asked.append(sorted(job_ids))
        return self.horizon

    def sleep_settled(self, horizon: int) -> bool:
        self.asked.append(horizon)
        return self.settled

    def sleep_end(self) -> None:
        self.asked.append("end")


class Ear:
    """A listener whose connection comes and goes as the test says."""

    def __init__(self) -> None:
        self.up = True
        self.generation = 1
        self.signals = Signals()

    def start(self) -> None: ...

    def ask(self, use: Callable[[Any], Any]) -> Any:
        if not self.up:
            raise ServerUnavailable("down")
        return use(self.signals)

    def close(self) -> None: ...


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture
def told() -> list[int]:
    return []


@pytest.fixture
def watch(ear: Ear, told: list[int]) -> PostgresWatch:
    return PostgresWatch(lambda heard, changed: ear, told=told.append, changed=lambda: None)


def test_all_are_read_until_the_wait_has_settled_and_once_after(
    watch: PostgresWatch, ear: Ear
) -> None:
    first, second = watch.look({1, 2}), watch.look({1, 2})
    assert (first.at_all, second.at_all) == (True, True)
    assert 0 < first.within < second.within <= 1
    assert ear.signals.asked == [[1, 2], 100, 100]

    ear.signals.settled = True

    assert watch.look({1, 2}) == Look(at_all=True, within=FLOOR)
    assert watch.look({1, 2}) == Look(at_all=False, within=FLOOR)
    assert ear.signals.asked == [[1, 2], 100, 100, 100]


def test_a_job_of_a_class_that_is_shown_begins_nothing_anew(watch: PostgresWatch, ear: Ear) -> None:
    ear.signals.settled = True
    watch.look({1, 2})

    assert watch.look({1, 2, 33, 34}).at_all is False
    assert ear.signals.asked == [[1, 2], 100]

    assert watch.look({33, 3}).at_all is True
    assert ear.signals.asked[2:] == [[3, 33], 100]


def test_each_class_is_shown_once(watch: PostgresWatch, ear: Ear) -> None:
    watch.look(range(1, 5001))

    assert len(ear.signals.asked[0]) == 32


def test_a_new_connection_is_the_whole_protocol_again(watch: PostgresWatch, ear: Ear) -> None:
    ear.signals.settled = True
    watch.look({1})
    ear.generation = 2

    assert watch.look({1}) == Look(at_all=True, within=FLOOR)
    assert ear.signals.asked == [[1], 100, [1], 100]


def test_a_connection_that_changes_during_the_question_is_not_relied_on(
    watch: PostgresWatch, ear: Ear, monkeypatch: pytest.MonkeyPatch
) -> None:
    def settled(horizon: int) -> bool:
        ear.generation = 2
        return True

    monkeypatch.setattr(ear.signals, "sleep_settled", settled)
    assert watch.look({1}) == Look(at_all=True, within=0.0)

    monkeypatch.undo()
    ear.signals.settled = True
    assert watch.look({1}).at_all
    assert ear.signals.asked == [[1], [1], 100]


@pytest.mark.parametrize("why", ["down", "no keys"])
def test_whoever_cannot_be_told_reads_every_second(
    watch: PostgresWatch, ear: Ear, why: str
) -> None:
    ear.signals.settled = True
    watch.look({1})
    ear.up, ear.signals.horizon = why != "down", None

    for _ in range(2):
        assert watch.look({1, 2}) == Look(at_all=True, within=1.0)

    ear.up, ear.signals.horizon = True, 101
    assert watch.look({1, 2}) == Look(at_all=True, within=FLOOR)
    assert ear.signals.asked[-2:] == [[1, 2], 101]


def test_nothing_is_shown_while_nobody_waits(watch: PostgresWatch, ear: Ear) -> None:
    ear.signals.settled = True
    watch.look({1})
    watch.rest()
    watch.rest()
    assert ear.signals.asked[2:] == ["end"]

    assert watch.look({1}).at_all
    assert ear.signals.asked[3:] == [[1], 100]


def test_only_the_ends_of_jobs_are_heard(watch: PostgresWatch, told: list[int]) -> None:
    for payload in ("d12", "c12", "q12", "q*", "d", "dx", "", "d7"):
        watch.heard(payload)

    assert told == [12, 7]


def test_a_file_is_read_when_somebody_has_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("tenure.sqlite_pace.time", SimpleNamespace(monotonic=lambda: now[0]))
    version = 1
    watch = SqliteWatch(lambda: version, closed=lambda: None)

    assert watch.look({1}).at_all
    pauses = []
    while now[0] < 108.0:
        look = watch.look({1})
        assert not look.at_all
        pauses.append(look.within)
        now[0] += look.within
    assert pauses == sorted(pauses)
    assert pauses[-1] == 0.1
    # What comes is found a sixty-fourth later than the time that it was waited for.
    assert len(pauses) < 400

    version = 2
    assert watch.look({1}) == Look(at_all=True, within=0.001)
    now[0] += 1.0
    assert watch.look({1, 2}) == Look(at_all=False, within=0.001)
