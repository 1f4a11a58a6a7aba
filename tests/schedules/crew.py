"""Performs families in several processes, each with databases of its own."""

from __future__ import annotations

import itertools
import multiprocessing
import random
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from math import factorial, prod
from queue import Empty
from typing import Any

from tests.schedules import house
from tests.schedules.families import BY_NAME, FAMILIES
from tests.schedules.perform import START, Theatre
from tests.schedules.play import Family, begun, drawn, orders
from tests.schedules.report import Counts, counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One family on one backend."""

    backend: str
    family: str
    sample: int | None
    """How many schedules; None: all."""
    seed: int


def tasks(backends: list[str], names: list[str], *, sample: int | None, seed: int) -> list[Task]:
    """The largest first, so that no process is left with one at the end."""
    made = []
    for backend in backends:
        able = [f for f in FAMILIES if backend in f.backends and (not names or f.name in names)]
        shares = [None if sample is None else -(-sample // len(able))] * len(able)
        made += [
            Task(backend=backend, family=family.name, sample=share, seed=seed)
            for family, share in zip(able, shares, strict=True)
        ]
    return sorted(made, key=lambda task: -interleavings(BY_NAME[task.family]))


def interleavings(family: Family) -> int:
    """In how many orders the scripts can be taken, if nobody ever waits."""
    lengths = [len(script) for script in family.scripts.values()]
    return factorial(sum(lengths)) // prod(map(factorial, lengths))


def chosen(task: Task) -> Iterator[str]:
    """The schedules of a task."""
    holds_rows = task.backend == "postgres"
    play = begun(BY_NAME[task.family], "q", START, holds_rows=holds_rows)
    if task.sample is None:
        return orders(play)
    dice = random.Random(f"{task.seed} {task.backend} {task.family}")
    found = dict.fromkeys(drawn(play, dice) for _ in range(2 * task.sample))
    return itertools.islice(iter(found), task.sample)


def perform(given: list[Task], template: str, processes: int) -> Iterator[Counts]:
    """What came of each task, as it ends."""
    context = multiprocessing.get_context("spawn")
    todo: Any = context.Queue()
    done: Any = context.Queue()
    for task in [*given, *[None] * processes]:
        todo.put(task)
    crew = [
        context.Process(target=_work, args=(todo, done, template), daemon=True)
        for _ in range(processes)
    ]
    for process in crew:
        process.start()
    missing = len(given)
    while missing:
        try:
            result = done.get(timeout=1)
        except Empty:
            if not any(process.is_alive() for process in crew):
                raise RuntimeError("the processes have ended without an answer") from None
            continue
        if isinstance(result, str):
            raise RuntimeError(result)
        missing -= 1
        yield result
    for process in crew:
        process.join()


def _work(todo: Any, done: Any, template: str) -> None:
    try:
        with ExitStack() as stack:
            theatres: dict[str, Theatre] = {}
            parent = multiprocessing.parent_process()
            while (task := todo.get()) is not None:
                if parent is None or not parent.is_alive():
                    return
                if task.backend not in theatres:
                    backend = stack.enter_context(house.opened(task.backend, template))
                    theatres[task.backend] = Theatre(backend)
                family = BY_NAME[task.family]
                done.put(counted(theatres[task.backend], task.backend, family, chosen(task)))
    except Exception:
        done.put(traceback.format_exc())
