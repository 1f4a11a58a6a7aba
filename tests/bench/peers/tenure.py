"""The adapter of tenure itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from importlib.metadata import version
from typing import Any

from tenure import Job, Tenure
from tenure.limits import MAX_NEW_JOBS
from tests.bench.peers.wire import QUEUE, Payload, Seen, serve

SLOTS = 10


class TenurePeer:
    def __init__(self) -> None:
        self._app = Tenure(os.environ["BENCH_DSN"])

    def prepare(self) -> dict[str, str]:
        self._app.install()
        return {
            "version": version("tenure"),
            "settings": f"the defaults: {SLOTS} slots, handler in a thread, history kept",
        }

    def bulk(self, payloads: list[Payload], *, urgent: bool = False, delay: float = 0) -> None:
        given = {
            "queue": QUEUE,
            "priority": 0 if urgent else 5,
            "delay": timedelta(seconds=delay) if delay else None,
        }
        for first in range(0, len(payloads), MAX_NEW_JOBS):
            some = payloads[first : first + MAX_NEW_JOBS]
            self._app.enqueue_many([self._app.new_job("noop", p, **given) for p in some])

    def producers(self, connections: int) -> list[Callable[[Payload], Any]]:
        return [lambda payload: self._app.enqueue("noop", payload, queue=QUEUE)] * connections

    def work(self, seen: Seen, *, batch: int | None = None, feature: str = "") -> None:
        @self._app.task(queue=QUEUE)
        def noop(job: Job) -> Any:
            seen(job.payload)
            if feature == "progress":
                job.progress({"done": 1})
            return {"sent": True} if feature == "result" else None

        # At most `slots` run and `buffer` wait for them.
        ahead = {} if batch is None else {"slots": 1, "buffer": batch - 1}
        self._runner = self._app.worker(**{"slots": SLOTS, **ahead})
        self._runner.start()

    def stop(self) -> None:
        self._runner.stop()


if __name__ == "__main__":
    serve(TenurePeer())
