"""The adapter of Oban for Python, on uvloop as its own command line is."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any

import uvloop
from oban import Oban, worker
from oban.schema import install
from psycopg_pool import AsyncConnectionPool

from tests.bench.peers.wire import QUEUE, Payload, Seen, serve

LIMIT = 100
CONNECTIONS = 10
BULK = 1_000


def nobody(payload: Payload) -> None:
    """What a producer's worker does with a job."""


class Noop:
    seen: Seen = staticmethod(nobody)

    async def process(self, job: Any) -> None:
        Noop.seen(job.args)


Handler = worker(queue=QUEUE)(Noop)


class ObanPeer:
    async def prepare(self) -> dict[str, str]:
        await install(await self._pool(1))
        return {
            "version": version("oban"),
            "settings": f"queue limit {LIMIT}, {CONNECTIONS} connections, uvloop, async handler",
        }

    async def bulk(
        self, payloads: list[Payload], *, urgent: bool = False, delay: float = 0
    ) -> None:
        oban = Oban(pool=await self._pool(1))
        given: dict[str, Any] = {"priority": 0 if urgent else 1}
        if delay:
            given["scheduled_at"] = datetime.now(UTC) + timedelta(seconds=delay)
        for first in range(0, len(payloads), BULK):
            some = payloads[first : first + BULK]
            await oban.enqueue_many([Handler.new(p, **given) for p in some])

    async def producers(self, connections: int) -> list[Callable[[Payload], Awaitable[None]]]:
        oban = Oban(pool=await self._pool(connections))

        async def enqueue(payload: Payload) -> None:
            await oban.enqueue(Handler.new(payload))

        return [enqueue] * connections

    async def work(self, seen: Seen, *, batch: int | None = None) -> None:
        Noop.seen = staticmethod(seen)
        self._oban = Oban(pool=await self._pool(CONNECTIONS), queues={QUEUE: batch or LIMIT})
        await self._oban.start()

    async def stop(self) -> None:
        await self._oban.stop()

    async def _pool(self, connections: int) -> Any:
        pool = AsyncConnectionPool(os.environ["BENCH_DSN"], min_size=connections, open=False)
        await pool.open(wait=True)
        return pool


if __name__ == "__main__":
    serve(ObanPeer(), uvloop.run)
