"""The adapter of pgmq: its SQL and its client, and the loop that a worker needs around them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import psycopg
from pgmq import PGMQueue
from pgmq.install import get_embedded_install_sql, get_embedded_sql_version
from psycopg_pool import ConnectionPool

from tests.bench.peers.wire import QUEUE, Cannot, Payload, Seen, serve

BATCH = 500
BULK = 10_000
LEASE = 30
POLL_MS = 10
"""Its read_with_poll looks every 100 ms unless told otherwise."""


class Pgmq:
    def __init__(self) -> None:
        self._ended = threading.Event()

    def prepare(self) -> dict[str, str]:
        with psycopg.connect(os.environ["BENCH_DSN"], autocommit=True) as connection:
            connection.execute(get_embedded_install_sql())
        self._client().create_queue(QUEUE)
        return {
            "version": f"{version('pgmq')} (SQL {get_embedded_sql_version()})",
            "settings": (
                f"read_with_poll of {BATCH}, every {POLL_MS} ms; delete_batch: no history"
            ),
        }

    def bulk(self, payloads: list[Payload], *, urgent: bool = False, delay: float = 0) -> None:
        if urgent:
            raise Cannot("no priorities")
        client = self._client()
        for first in range(0, len(payloads), BULK):
            client.send_batch(QUEUE, payloads[first : first + BULK], delay=int(delay))

    def producers(self, connections: int) -> list[Callable[[Payload], Any]]:
        client = self._client(connections)
        return [lambda payload: client.send(QUEUE, payload)] * connections

    def work(self, seen: Seen, *, batch: int | None = None) -> None:
        threading.Thread(target=self._work, args=[seen, batch or BATCH], daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def _work(self, seen: Seen, batch: int) -> None:
        client = self._client()
        while not self._ended.is_set():
            messages = client.read_with_poll(
                QUEUE, vt=LEASE, qty=batch, max_poll_seconds=1, poll_interval_ms=POLL_MS
            )
            for message in messages or []:
                seen(message.message)
            if messages:
                client.delete_batch(QUEUE, [message.msg_id for message in messages])

    def _client(self, connections: int = 1) -> Any:
        # With a pool of one's own it takes any DSN, a Unix socket's too.
        pool = ConnectionPool(os.environ["BENCH_DSN"], min_size=connections, open=True)
        pool.wait()
        return PGMQueue(pool=pool, init_extension=False)


if __name__ == "__main__":
    serve(Pgmq())
