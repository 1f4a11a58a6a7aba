"""What every adapter program does alike: obey commands, one JSON line each, and time the work."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import os
import random
import sys
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Protocol

QUEUE = "bench"
WARM_UP = 0.3
"""Seconds in which connections are opened that open when they are first used."""
Payload = dict[str, Any]
Seen = Callable[[Payload], None]


class Peer(Protocol):
    """A job queue as the benchmark sees it; methods may be coroutines."""

    def prepare(self) -> dict[str, str] | Awaitable[dict[str, str]]:
        """Make the schema in an empty database; the version, and the settings in words."""

    def bulk(
        self, payloads: list[Payload], *, urgent: bool = False, delay: float = 0
    ) -> Awaitable[None] | None:
        """Enqueue all of them by the best means for many, committed on return.

        Urgent ones have a higher priority than others; `delay` is in seconds. What the queue
        does not have raises `Cannot`.
        """

    def producers(self, connections: int) -> Any:
        """So many functions, with a connection each, that enqueue one payload and commit.

        They are run at once, in tasks if they are coroutine functions, else in threads.
        """

    def work(self, seen: Seen, *, batch: int | None = None) -> Awaitable[None] | None:
        """Start a worker whose handler is `seen`, and return.

        It claims `batch` jobs at a time, or as many as its settings say.
        """

    def stop(self) -> Awaitable[None] | None:
        """Stop the worker."""


class Cannot(Exception):
    """The queue has no such thing."""


@dataclass
class Handled:
    """When which job's handler started, by the machine's monotonic clock."""

    starts: list[tuple[int, float]] = field(default_factory=list)

    def seen(self, payload: Payload) -> None:
        self.starts.append((payload["n"], monotonic()))


def payload(number: int) -> Payload:
    """About 50 bytes of JSON, and no two alike."""
    return {"n": number, "to": "ada@example.com", "note": "hello"}


class Commands:
    """A command's name is a method's."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._handled = Handled()

    async def prepare(self) -> dict[str, str]:
        answer: dict[str, str] = await _result(self._peer.prepare())
        return answer

    async def bulk(self, first: int, jobs: int, **options: Any) -> dict[str, float]:
        payloads = [payload(n) for n in range(first, first + jobs)]
        began = monotonic()
        await _result(self._peer.bulk(payloads, **options))
        return {"seconds": monotonic() - began}

    async def single(self, first: int, connections: int, seconds: float) -> dict[str, float]:
        """Enqueue one at a time, on so many connections at once, for so long."""
        producers = await _result(self._peer.producers(connections))
        numbers = itertools.count(first)
        await _at_once(producers, numbers, monotonic() + WARM_UP)
        began = monotonic()
        jobs = sum(await _at_once(producers, numbers, began + seconds))
        return {"jobs": jobs, "seconds": monotonic() - began}

    async def paced(self, first: int, jobs: int, every: float) -> dict[str, Any]:
        """Enqueue now and then: when each call began and ended.

        The pauses vary, so that nobody's polling falls into step with them.
        """
        [enqueue] = await _result(self._peer.producers(1))
        calls = []
        for n in range(first, first + jobs):
            await asyncio.sleep(every * random.uniform(0.6, 1.4))
            began = monotonic()
            await _result(enqueue(payload(n)))
            calls.append((n, began, monotonic()))
        return {"calls": calls}

    async def work(self, **options: Any) -> dict[str, str]:
        await _result(self._peer.work(self._handled.seen, **options))
        return {}

    async def handled(self) -> dict[str, Any]:
        starts = self._handled.starts
        return {"jobs": len(starts), "first": starts[0][1] if starts else None}

    async def starts(self) -> dict[str, Any]:
        return {"starts": self._handled.starts}

    async def stop(self) -> dict[str, str]:
        await _result(self._peer.stop())
        return {}


def serve(peer: Peer, run: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run) -> None:
    """Obey until the input ends. What the peer itself prints goes to stderr."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        run(_obey(Commands(peer), lambda line: print(json.dumps(line), file=answers, flush=True)))
        # Whatever threads and tasks the peer still has, nothing more is wanted of them.
        os._exit(0)


async def _obey(commands: Commands, answer: Callable[[dict[str, Any]], None]) -> None:
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as reader:
        while line := await loop.run_in_executor(reader, sys.stdin.readline):
            command = json.loads(line)
            try:
                answer(await getattr(commands, command.pop("do"))(**command))
            except Exception as error:
                traceback.print_exc()
                answer({"error": f"{type(error).__name__}: {error}"})


async def _at_once(
    producers: Sequence[Callable[[Payload], Any]], numbers: itertools.count[int], deadline: float
) -> list[int]:
    if inspect.iscoroutinefunction(producers[0]):
        return await asyncio.gather(*(_in_task(p, numbers, deadline) for p in producers))
    with ThreadPoolExecutor(len(producers)) as threads:
        loop = asyncio.get_running_loop()
        return await asyncio.gather(
            *(loop.run_in_executor(threads, _in_thread, p, numbers, deadline) for p in producers)
        )


async def _in_task(
    enqueue: Callable[[Payload], Awaitable[Any]], numbers: itertools.count[int], deadline: float
) -> int:
    jobs = 0
    while monotonic() < deadline:
        await enqueue(payload(next(numbers)))
        jobs += 1
    return jobs


def _in_thread(
    enqueue: Callable[[Payload], Any], numbers: itertools.count[int], deadline: float
) -> int:
    jobs = 0
    while monotonic() < deadline:
        enqueue(payload(next(numbers)))
        jobs += 1
    return jobs


async def _result(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
