"""Enqueues jobs of every temper, at a bounded rate, and notes which calls were answered."""

from __future__ import annotations

import random
import threading
from datetime import timedelta
from typing import Any

from tenure import NewJob, Tenure
from tests.chaos.handlers import new_job
from tests.chaos.history import Batch

WEIGHTS = {
    "noop": 50,
    "ledger": 12,
    "flaky": 9,
    "walks": 6,
    "nap": 4,
    "sealed": 4,
    "giver": 4,
    "stubborn": 3,
    "anap": 2,
    "hopeless": 2,
    "undone": 1,
    "overdue": 0.4,
    "crash": 0.1,
}
BATCH = 60


class Producer:
    """A thread that makes `jobs` jobs within `seconds`, in calls of up to `BATCH`."""

    def __init__(self, app: Tenure, *, jobs: int, seconds: float, poison: int, seed: int) -> None:
        self._app = app
        self._random = random.Random(seed)
        self._left = jobs
        self._poison = poison
        self._poison_each = jobs / max(1, poison)
        self._pause = seconds * BATCH / jobs
        self.stopping = threading.Event()
        self.batches: list[Batch] = []
        self._thread = threading.Thread(target=self._run, name="soak-producer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether there is more to enqueue."""
        return self._thread.is_alive()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _run(self) -> None:
        number = 0
        while self._left > 0 and not self.stopping.is_set():
            number += 1
            size = min(self._left, BATCH, self._random.randint(1, 2 * BATCH))
            jobs = [self._job(number) for _ in range(size)]
            if self._poison and self._random.random() < size / self._poison_each:
                self._poison -= 1
                jobs[-1] = new_job("poison", {"batch": number}, max_attempts=2)
            try:
                answers = self._app.enqueue_many(jobs)
            except Exception:  # it may have been committed all the same, so no second call
                self.batches.append(Batch(number, size, None))
            else:
                self._left -= size
                ids = tuple(answer.job_id for answer in answers)
                self.batches.append(Batch(number, size, ids))
            self.stopping.wait(self._random.uniform(0.5, 1.5) * self._pause * size / BATCH)

    def _job(self, number: int) -> NewJob:
        [kind] = self._random.choices(list(WEIGHTS), list(WEIGHTS.values()))
        payload: dict[str, Any] = {"batch": number}
        given: dict[str, Any] = {"priority": self._random.choice((3, 5, 5, 5, 7))}
        if kind in ("nap", "anap"):
            long = self._random.random() < 0.06
            payload["seconds"] = 2.0 if long else self._random.uniform(0, 0.1)
            payload["asks"] = self._random.random() < 0.5
        elif kind == "sealed":
            payload["seconds"] = self._random.choice((0.0, 0.05, 0.2))
        elif kind == "flaky":
            payload["fails"] = self._random.randint(1, 2)
        elif kind == "stubborn":
            given["max_attempts"] = 2
        elif kind == "overdue":
            payload |= {"seconds": 1.2, "asks": self._random.random() < 0.5}
            given |= {"max_attempts": 2, "timeout": timedelta(seconds=0.8)}
        if self._random.random() < 0.1:
            given["delay"] = timedelta(seconds=self._random.uniform(0, 3))
        return new_job(kind, payload, **given)
