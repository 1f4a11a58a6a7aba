"""What is measured of one peer in one turn, on a fresh database."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tenure.embedded import Server
from tests.bench import catalogue
from tests.bench.adapter import Adapter, AdapterFailed
from tests.bench.catalogue import Installed, Peer
from tests.bench.server import Database, database

PATIENCE = 600.0
"""Seconds; nothing measured here takes that long unless it hangs."""


class Place(Protocol):
    """Where the jobs are: a database of the server, or a file."""

    @property
    def url(self) -> str: ...

    def ask(self, sql: str) -> Any:
        """The one value that a query answers."""


@dataclass
class Turn:
    """A peer on a database of its own, with a process that enqueues."""

    peer: Peer
    installed: Installed
    place: Place
    producer: Adapter
    about: dict[str, str]
    enqueued: int = 0
    spent: float = 0
    """CPU seconds of workers that were closed."""

    @property
    def database(self) -> Database:
        assert isinstance(self.place, Database)
        return self.place

    def bulk(self, jobs: int, **options: float) -> float:
        """Enqueue so many at once; jobs a second."""
        self.begin_bulk(jobs, **options)
        return jobs / float(self.producer.answer(PATIENCE)["seconds"])

    def begin_bulk(self, jobs: int, **options: float) -> None:
        """Have them enqueued; the producer answers when they are."""
        self.producer.send("bulk", first=self.numbers(jobs), jobs=jobs, **options)

    def single(self, connections: int, seconds: float) -> float:
        """Enqueue one by one on so many connections at once; jobs a second."""
        # More than are enqueued, so that later numbers are new.
        first = self.numbers(1_000_000)
        answer = self.producer.ask(
            "single", first=first, connections=connections, seconds=seconds, timeout=PATIENCE
        )
        return float(answer["jobs"]) / float(answer["seconds"])

    @contextlib.contextmanager
    def workers(self, processes: int = 1, **options: object) -> Iterator[Sequence[Adapter]]:
        """Worker processes that have been told to start; an option that is None is left out."""
        given = {name: value for name, value in options.items() if value is not None}
        with contextlib.ExitStack() as stack:
            workers = [
                stack.enter_context(catalogue.start(self.peer, self.installed, self.place.url))
                for _ in range(processes)
            ]
            for worker in workers:
                worker.ask("handled")  # its program is loaded
            for worker in workers:
                worker.send("work", **given)
            for worker in workers:
                worker.answer()
            yield workers

    def drain(self, jobs: int, processes: int = 1, **options: object) -> float:
        """Work off what was enqueued; jobs a second.

        From the start of the first handler until the database shows that no job is left.
        """
        with self.workers(processes, **options) as workers:
            wait_until_handled(workers, jobs)
            ended = self.wait_until_finished()
            first: float = min(
                answer["first"]
                for answer in (worker.ask("handled") for worker in workers)
                if answer["first"] is not None
            )
            prove_once(workers, jobs)
            return jobs / (ended - first)

    def latencies(self, jobs: int, every: float = 0.05) -> tuple[list[float], list[float]]:
        """Seconds from the call that enqueues to the handler's start, and from its return.

        The job is committed in between: the first is too long by the call itself, the second
        too short by whatever the call does after its commit.
        """
        with self.workers() as [worker]:
            time.sleep(1)  # it has settled down to sleep
            # The first few open connections.
            self.producer.ask("paced", first=self.numbers(5), jobs=5, every=every)
            first = self.numbers(jobs)
            calls = self.producer.ask("paced", first=first, jobs=jobs, every=every)["calls"]
            wait_until_handled([worker], jobs + 5)
            started = dict(worker.ask("starts")["starts"])
        return (
            [started[n] - began for n, began, _ in calls],
            [started[n] - returned for n, _, returned in calls],
        )

    def wait_until_finished(self) -> float:
        """When the database shows that no job is left."""
        deadline = time.monotonic() + PATIENCE
        while self.place.ask(self.peer.unfinished):
            if time.monotonic() > deadline:
                raise AdapterFailed("its jobs were handled and are not finished")
            time.sleep(0.001)
        return time.monotonic()

    def numbers(self, jobs: int) -> int:
        """The first of so many numbers that no job has yet."""
        first = self.enqueued
        self.enqueued += jobs
        return first


@contextlib.contextmanager
def turn(server: Server, peer: Peer, installed: Installed) -> Iterator[Turn]:
    """Begin a turn: an empty database with the peer's tables, and its producer."""
    with (
        database(server, "bench") as fresh,
        catalogue.start(peer, installed, fresh.url) as producer,
    ):
        about = producer.ask("prepare")
        yield Turn(peer, installed, fresh, producer, about)


def wait_until_handled(workers: Sequence[Adapter], jobs: int) -> None:
    """Ask the workers now and then, more often towards the end, not to disturb them."""
    began = time.monotonic()
    while True:
        handled = sum(worker.ask("handled")["jobs"] for worker in workers)
        if handled >= jobs:
            return
        passed = time.monotonic() - began
        if passed > PATIENCE:
            raise AdapterFailed(f"handled {handled} of {jobs} jobs in {passed:.0f} s")
        left = (jobs - handled) * passed / handled if handled else 0.02
        time.sleep(min(0.05, max(0.002, left / 2)))


def prove_once(workers: Sequence[Adapter], jobs: int) -> None:
    """Every job's handler ran exactly once, else the figure means nothing."""
    numbers = [n for worker in workers for n, _ in worker.ask("starts")["starts"]]
    if len(numbers) != jobs or len(set(numbers)) != jobs:
        raise AdapterFailed(f"{len(numbers)} handler runs of {len(set(numbers))} of {jobs} jobs")
