"""The adapter of Awa: COPY into its queue storage, claims in batches."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from awa import AsyncClient

from tests.bench.peers.wire import QUEUE, Payload, Seen, serve

WORKERS = 200
CONNECTIONS = 10
BULK = 10_000


@dataclass
class Noop:
    n: int
    to: str
    note: str


class Awa:
    def __init__(self) -> None:
        self._producer = self._client()

    async def prepare(self) -> dict[str, str]:
        await self._producer.migrate()
        # Until a worker has started once, its COPY fails.
        self._producer.task(Noop, queue=QUEUE)(_never)
        await self._producer.start([(QUEUE, 1)])
        await self._producer.shutdown()
        self._producer = self._client()
        return {
            "version": version("awa-pg"),
            "settings": f"queue storage, {WORKERS} workers, async handler; COPY",
        }

    async def bulk(
        self, payloads: list[Payload], *, urgent: bool = False, delay: float = 0
    ) -> None:
        given: dict[str, Any] = {"queue": QUEUE, "priority": 1 if urgent else 2}
        if delay:
            given["run_at"] = datetime.now(UTC) + timedelta(seconds=delay)
        for first in range(0, len(payloads), BULK):
            jobs = [Noop(**p) for p in payloads[first : first + BULK]]
            await self._producer.enqueue_many_copy(jobs, **given)

    async def producers(self, connections: int) -> list[Callable[[Payload], Awaitable[None]]]:
        client = self._client(connections)

        async def enqueue(payload: Payload) -> None:
            await client.insert(Noop(**payload), queue=QUEUE)

        return [enqueue] * connections

    async def work(self, seen: Seen, *, batch: int | None = None) -> None:
        self._worker = self._client()

        @self._worker.task(Noop, queue=QUEUE)
        async def noop(job: Any) -> None:
            seen(asdict(job.args))

        ahead = {} if batch is None else {"claim_batch_size": batch}
        await self._worker.start([{"name": QUEUE, "max_workers": WORKERS, **ahead}])

    async def stop(self) -> None:
        await self._worker.shutdown()

    def _client(self, connections: int = CONNECTIONS) -> Any:
        # It wants a host before the database, be it a Unix socket's folder.
        at = {name: quote(os.environ[name], safe="") for name in ("PGUSER", "PGHOST", "PGPORT")}
        place = "postgresql://{PGUSER}@{PGHOST}:{PGPORT}/".format_map(at)
        return AsyncClient(place + os.environ["PGDATABASE"], max_connections=connections)


async def _never(job: Any) -> None:
    raise AssertionError("nothing was enqueued yet")


if __name__ == "__main__":
    serve(Awa())
