"""No queue at all but the ceiling of one: a bare table, with batch claim and batch delete."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from tests.bench.peers.wire import Cannot, Payload, Seen, serve

BATCH = 500
CLAIM = """
    update bare
       set running = true
     where id = any(array(
               select id from bare where not running order by id limit %s for update skip locked))
 returning id, payload
"""


class Bare:
    def __init__(self) -> None:
        self._connection = self._connect()
        self._ended = threading.Event()

    def prepare(self) -> dict[str, str]:
        self._connection.execute(
            """
            create table bare (
                id bigint generated always as identity primary key,
                running boolean not null default false,
                payload jsonb not null)
            """
        )
        return {"version": "", "settings": f"claim {BATCH}, delete {BATCH}; no history, no rescue"}

    def bulk(self, payloads: list[Payload], *, urgent: bool = False, delay: float = 0) -> None:
        if urgent or delay:
            raise Cannot
        with self._connection.cursor().copy("copy bare (payload) from stdin") as copy:
            for payload in payloads:
                copy.write_row([Jsonb(payload)])

    def producers(self, connections: int) -> list[Callable[[Payload], Any]]:
        return [self._producer() for _ in range(connections)]

    def work(self, seen: Seen, *, batch: int | None = None) -> None:
        threading.Thread(target=self._work, args=[seen, batch or BATCH], daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def _work(self, seen: Seen, batch: int) -> None:
        with self._connect() as connection:
            while not self._ended.is_set():
                rows = connection.execute(CLAIM, [batch], prepare=True).fetchall()
                for _, payload in rows:
                    seen(payload)
                ids = [row[0] for row in rows]
                connection.execute("delete from bare where id = any(%s)", [ids], prepare=True)
                if not rows:
                    self._ended.wait(0.001)

    def _producer(self) -> Callable[[Payload], Any]:
        connection = self._connect()
        return lambda payload: connection.execute(
            "insert into bare (payload) values (%s)", [Jsonb(payload)], prepare=True
        )

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(os.environ["BENCH_DSN"], autocommit=True)


if __name__ == "__main__":
    serve(Bare())
