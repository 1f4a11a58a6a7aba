"""The adapter of Procrastinate: many jobs at once in one process, as its documentation advises."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any

from procrastinate import App, PsycopgConnector

from tests.bench.peers.wire import QUEUE, Payload, Seen, serve

CONCURRENCY = 30
BULK = 10_000


def nobody(payload: Payload) -> None:
    """What a producer's task does with a job."""


class Procrastinate:
    def __init__(self) -> None:
        self._seen: Seen = nobody
        self._app = self._made(connections=CONCURRENCY + 2)

    async def prepare(self) -> dict[str, str]:
        async with self._made(connections=1).open_async() as app:
            await app.schema_manager.apply_schema_async()
        return {
            "version": version("procrastinate"),
            "settings": f"concurrency {CONCURRENCY} over as many connections, async handler",
        }

    async def bulk(
        self, payloads: list[Payload], *, urgent: bool = False, delay: float = 0
    ) -> None:
        later = datetime.now(UTC) + timedelta(seconds=delay) if delay else None
        async with self._made(connections=1).open_async() as app:
            job = app.configure_task("noop", priority=int(urgent), schedule_at=later, queue=QUEUE)
            for first in range(0, len(payloads), BULK):
                await job.batch_defer_async(*payloads[first : first + BULK])

    async def producers(self, connections: int) -> list[Callable[[Payload], Awaitable[None]]]:
        app = self._made(connections=connections)
        await app.open_async()
        job = app.configure_task("noop", queue=QUEUE)

        async def enqueue(payload: Payload) -> None:
            await job.defer_async(**payload)

        return [enqueue] * connections

    async def work(self, seen: Seen, *, batch: int | None = None) -> None:
        self._seen = seen
        await self._app.open_async()
        self._running = asyncio.create_task(
            self._app.run_worker_async(
                queues=[QUEUE],
                concurrency=batch or CONCURRENCY,
                install_signal_handlers=False,
                shutdown_graceful_timeout=5,
            )
        )

    async def stop(self) -> None:
        self._running.cancel()
        await asyncio.wait([self._running])

    def _made(self, *, connections: int) -> App:
        app = App(
            connector=PsycopgConnector(
                conninfo=os.environ["BENCH_DSN"], min_size=connections, max_size=connections
            )
        )

        @app.task(name="noop", queue=QUEUE)
        async def noop(**payload: Any) -> None:
            self._seen(payload)

        return app


if __name__ == "__main__":
    serve(Procrastinate())
