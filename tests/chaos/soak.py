"""Jobs of every temper under runners that are killed, until all have ended; then the proof."""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tests.chaos import journal
from tests.chaos.checker import check
from tests.chaos.figures import figures
from tests.chaos.fleet import Fleet
from tests.chaos.handlers import app_of
from tests.chaos.history import History
from tests.chaos.operator import Operator
from tests.chaos.producer import Producer
from tests.chaos.rogue import Rogue
from tests.chaos.stage import PostgresStage, SqliteStage, Stage

Backend = Literal["postgres", "sqlite"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is done, for how long."""

    backend: Backend
    jobs: int
    seconds: float
    """Of faults."""
    drain: float
    """Seconds in which all jobs must have ended after that."""
    seed: int
    runners: int = 3
    crashes: int = 2
    """Of the server."""
    poison: int
    """Jobs that kill their runner."""
    acts_per_second: float = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of it."""

    figures: dict[str, int]
    violations: list[str]


def soak(plan: Plan, folder: Path, say: Callable[[str], None] = lambda line: None) -> Report:
    """Run the plan; `folder` gets the journals and logs. The calling thread must be long-lived."""
    stage: Stage = PostgresStage() if plan.backend == "postgres" else SqliteStage(folder)
    with contextlib.ExitStack() as stack:
        stack.callback(stage.close)
        app = stack.enter_context(app_of(stage.target))
        producer = Producer(
            app,
            jobs=plan.jobs,
            seconds=plan.seconds * 0.85,
            poison=plan.poison,
            seed=plan.seed,
        )
        stack.callback(producer.stopping.set)
        operator = Operator(app, producer, per_second=plan.acts_per_second, seed=plan.seed + 1)
        stack.callback(operator.stop)
        rogue = Rogue(app, folder, per_second=plan.acts_per_second, seed=plan.seed + 4)
        stack.callback(rogue.stop)
        fleet = Fleet(stage.target, folder, size=plan.runners, seed=plan.seed + 2)
        stack.callback(fleet.close)
        fleet.tend()
        producer.start()
        operator.start()
        rogue.start()
        done = _faults(plan, stage, fleet, say)
        fleet.go_on()
        if not all([operator.stop(), rogue.stop()]):
            fleet.complaints.append("a last call of the operator or the rogue did not end")
        done["stale calls refused"] = rogue.refused
        complaints = _wind_up(plan, stage, folder, fleet, producer, say)
        history = _read(stage, folder, producer, operator)
    lives, violations = check(history)
    return Report(
        figures=figures(history, lives, {**fleet.counts, **done}),
        violations=[*complaints, *fleet.complaints, *rogue.complaints, *map(str, violations)],
    )


def _faults(plan: Plan, stage: Stage, fleet: Fleet, say: Callable[[str], None]) -> dict[str, int]:
    """A kill or a stop each second, sessions hung up, crashes spread over the time."""
    chance = random.Random(plan.seed + 3)
    counts = Counter({"sessions hung up": 0, "server crashes": 0})
    began = time.monotonic()
    crashes = [
        began + plan.seconds * (number + 1) / (plan.crashes + 1) for number in range(plan.crashes)
    ]
    next_strike = next_word = began + 1
    while (now := time.monotonic()) < began + plan.seconds:
        fleet.tend()
        if crashes and now >= crashes[0]:
            crashes.pop(0)
            stage.crash()
            counts["server crashes"] += 1
        if now >= next_strike:
            next_strike = now + 1
            fleet.strike()
            if chance.random() < 0.5 and stage.hang_up():
                counts["sessions hung up"] += 1
        if now >= next_word:
            next_word = now + 10
            say(f"{now - began:4.0f} s: {sum(stage.live().values())} jobs have not ended")
        time.sleep(0.05)
    return dict(counts)


def _wind_up(
    plan: Plan,
    stage: Stage,
    folder: Path,
    fleet: Fleet,
    producer: Producer,
    say: Callable[[str], None],
) -> list[str]:
    """Do no more harm, and wait until every job has ended; complaints."""
    complaints = []
    began = time.monotonic()
    next_word = began + 10
    while True:
        running, live = producer.running, stage.live()
        if not (running or live):
            break
        if (now := time.monotonic()) > began + plan.drain:
            producer.stopping.set()
            producer.join(5)
            complaints.append(f"after {plan.drain:g} s without faults not ended: {live}")
            break
        if now > next_word:
            next_word = now + 10
            say(f"{now - began:4.0f} s without faults: {sum(live.values())} jobs have not ended")
        fleet.tend()
        time.sleep(0.05)
    say("no more faults, all has ended" if not complaints else complaints[-1])
    fleet.end(30)
    if left := journal.writers_alive(folder):
        complaints.append(f"processes outlive their runners: {left}")
    return complaints


def _read(stage: Stage, folder: Path, producer: Producer, operator: Operator) -> History:
    starts, lost = journal.read(folder)
    return replace(
        stage.history(),
        starts=starts,
        lost=lost,
        batches=producer.batches,
        acts=operator.acts,
    )
