"""The adapter of PgQueuer: asyncpg and uvloop, as in its own benchmark."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from importlib.metadata import version
from typing import Any

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from tests.bench.peers.wire import QUEUE, Payload, Seen, serve

BATCH = 100
BULK = 10_000


class PgQueuerPeer:
    async def prepare(self) -> dict[str, str]:
        await (await self._queries()).install()
        return {
            "version": version("pgqueuer"),
            "settings": f"asyncpg, uvloop, batch_size {BATCH}, async handler",
        }

    async def bulk(
        self, payloads: list[Payload], *, urgent: bool = False, delay: float = 0
    ) -> None:
        later = timedelta(seconds=delay) if delay else None
        queries = await self._queries()
        for first in range(0, len(payloads), BULK):
            data = [json.dumps(p).encode() for p in payloads[first : first + BULK]]
            many = len(data)
            await queries.enqueue([QUEUE] * many, data, [int(urgent)] * many, [later] * many)

    async def producers(self, connections: int) -> list[Callable[[Payload], Awaitable[None]]]:
        return [self._producer(await self._queries()) for _ in range(connections)]

    async def work(self, seen: Seen, *, batch: int | None = None) -> None:
        self._worker = PgQueuer(AsyncpgDriver(await self._connect()))

        @self._worker.entrypoint(QUEUE)
        async def noop(job: Job) -> None:
            seen(json.loads(job.payload))

        self._running = asyncio.create_task(self._worker.run(batch_size=batch or BATCH))

    async def stop(self) -> None:
        self._worker.shutdown.set()
        await self._running

    def _producer(self, queries: Queries) -> Callable[[Payload], Awaitable[None]]:
        async def enqueue(payload: Payload) -> None:
            await queries.enqueue(QUEUE, json.dumps(payload).encode())

        return enqueue

    async def _queries(self) -> Queries:
        return Queries(AsyncpgDriver(await self._connect()))

    async def _connect(self) -> Any:
        return await asyncpg.connect(os.environ["BENCH_DSN"])


if __name__ == "__main__":
    serve(PgQueuerPeer(), uvloop.run)
