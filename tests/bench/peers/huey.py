"""The adapter of huey on SQLite; it has no bulk enqueue, and takes a job out before it runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from huey import SqliteHuey

from tests.bench.peers.wire import QUEUE, Cannot, Payload, Seen, serve

DELAY = 0.01
"""Seconds between looks; its own settings go from 0.1 up to 10."""


class Huey:
    def __init__(self) -> None:
        self._seen: Seen | None = None
        self._huey = SqliteHuey(QUEUE, filename=os.environ["BENCH_DSN"], results=False)

        @self._huey.task(name="noop")
        def noop(payload: Payload) -> None:
            assert self._seen is not None
            self._seen(payload)

        self._noop = noop

    def prepare(self) -> dict[str, str]:
        return {
            "version": version("huey"),
            "settings": f"one thread, a look each {DELAY} s, no results; a job is popped",
        }

    def bulk(self, payloads: list[Payload], *, urgent: bool = False, delay: float = 0) -> None:
        if urgent or delay:
            raise Cannot
        for payload in payloads:
            self._noop(payload)

    def producers(self, connections: int) -> list[Callable[[Payload], Any]]:
        return [self._noop] * connections

    def work(self, seen: Seen, *, batch: int | None = None) -> None:
        self._seen = seen
        self._consumer = self._huey.create_consumer(
            workers=1, periodic=False, initial_delay=DELAY, max_delay=DELAY
        )
        self._consumer.start()

    def stop(self) -> None:
        self._consumer.stop(graceful=True)


if __name__ == "__main__":
    serve(Huey())
