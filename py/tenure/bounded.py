"""A PostgreSQL connection that gives up on a server which does not answer."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg

_LOOK_EVERY = 0.1


class BoundedConnection(psycopg.Connection[Any]):
    """As psycopg's, with a bound on the wait for each answer.

    Keepalives find out that a machine is gone. A server process that is stopped, or waits for a
    lock that nobody gives up, keeps its connection alive and says nothing.
    """

    answer_within: float | None = None
    """Seconds after which a call raises `psycopg.OperationalError`, and the connection is to be
    closed: what was asked may still be done. None: wait for ever."""

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **named: Any) -> Any:
        if self.answer_within is None:
            return super().wait(gen, *args, **named)
        if not args:
            named.setdefault("interval", min(_LOOK_EVERY, self.answer_within / 4))
        return super().wait(_within(self.answer_within, gen), *args, **named)


def _within(seconds: float, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    end = time.monotonic() + seconds
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() >= end:
                gen.close()
                raise psycopg.OperationalError(f"the server did not answer within {seconds:g} s")
            wanted = gen.send(ready)
    except StopIteration as end_of_it:
        return end_of_it.value
