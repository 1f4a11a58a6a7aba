"""Cancels and retries at random, and notes each answer."""

from __future__ import annotations

import random
import threading

from tenure import JobStatus, Tenure
from tests.chaos.history import Act
from tests.chaos.producer import Producer


class Operator:
    """A thread that does so until it is stopped."""

    def __init__(self, app: Tenure, producer: Producer, *, per_second: float, seed: int) -> None:
        self._app = app
        self._producer = producer
        self._pause = 1 / per_second
        self._random = random.Random(seed)
        self._cancelled: list[int] = []
        self._stopping = threading.Event()
        self.acts: list[Act] = []
        self._thread = threading.Thread(target=self._run, name="soak-operator", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> bool:
        """Begin no further call; False when the one under way does not end."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(15)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.wait(self._random.uniform(0, 2) * self._pause):
            if (job_id := self._any_job()) is None:
                continue
            if self._random.random() < 0.6:
                if self._act("cancel", job_id) in ("ok", "already"):
                    self._cancelled.append(job_id)
            elif self._cancelled and self._random.random() < 0.6:
                self._act("retry", self._random.choice(self._cancelled[-50:]))
            else:
                self._act("retry", job_id)

    def _any_job(self) -> int | None:
        """Mostly one that runs or is young, because the old ones have ended."""
        if self._random.random() < 0.4:
            return self._running_job()
        answered = [b for b in self._producer.batches[-40:] if b.job_ids]
        if not answered:
            return None
        recent = answered[-6:] if self._random.random() < 0.7 else answered
        return self._random.choice(self._random.choice(recent).job_ids or ())

    def _running_job(self) -> int | None:
        try:
            running = self._app.store.records().jobs(status=JobStatus.RUNNING)
        except Exception:  # the server is away, or the file is held
            return None
        return self._random.choice(running).job_id if running else None

    def _act(self, verb: str, job_id: int) -> str | None:
        verdict: str | None
        try:
            call = self._app.cancel if verb == "cancel" else self._app.retry
            verdict = str(call(job_id).verdict)
        except Exception:  # whether it took effect is not known
            verdict = None
        self.acts.append(Act(verb, job_id, verdict))
        return verdict
