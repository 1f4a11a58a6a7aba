"""The adapter of litequeue, and the loop that a worker needs around it."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from litequeue import LiteQueue

from tests.bench.peers.wire import Cannot, Payload, Seen, serve

DELAY = 0.01
DURABLE = "--durable" in sys.argv


class Litequeue:
    def __init__(self) -> None:
        self._ended = threading.Event()

    def prepare(self) -> dict[str, str]:
        self._queue()
        durable = "synchronous FULL" if DURABLE else "its synchronous NORMAL: commits may be lost"
        return {
            "version": version("litequeue"),
            "settings": f"{durable}; a look each {DELAY} s; no rescue",
        }

    def bulk(self, payloads: list[Payload], *, urgent: bool = False, delay: float = 0) -> None:
        if urgent or delay:
            raise Cannot
        queue = self._queue()
        with queue.transaction():
            for payload in payloads:
                queue.put(json.dumps(payload))

    def producers(self, connections: int) -> list[Callable[[Payload], Any]]:
        return [self._producer() for _ in range(connections)]

    def work(self, seen: Seen, *, batch: int | None = None) -> None:
        threading.Thread(target=self._work, args=[seen], daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def _work(self, seen: Seen) -> None:
        queue = self._queue()
        while not self._ended.is_set():
            if message := queue.pop():
                seen(json.loads(message.data))
                queue.done(message.message_id)
            else:
                self._ended.wait(DELAY)

    def _producer(self) -> Callable[[Payload], Any]:
        queue = self._queue()
        return lambda payload: queue.put(json.dumps(payload))

    def _queue(self) -> Any:
        queue = LiteQueue(os.environ["BENCH_DSN"], timeout=60)
        if DURABLE:
            queue.conn.execute("pragma synchronous = full")
        return queue


if __name__ == "__main__":
    serve(Litequeue())
