"""The worker processes as the driver sees them: started, heard, stopped and killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tenure.demo.stage import Point


class NotAsArranged(Exception):
    """The demo could not go on: a worker ended by itself, or something took too long."""


@dataclass(eq=False)
class WorkerProcess:
    """One of them."""

    number: int
    process: subprocess.Popen[bytes]
    log: Path
    dismissed: bool = False
    """Its end is no surprise."""

    @property
    def name(self) -> str:
        return f"worker {self.number}"

    def cue(self, job_id: int, point: Point) -> None:
        """Let a job go on that waits there."""
        assert self.process.stdin is not None
        line = json.dumps({"job_id": job_id, "point": point}) + "\n"
        with contextlib.suppress(BrokenPipeError):  # it has ended
            self.process.stdin.write(line.encode())

    def kill(self) -> None:
        """End it as a power cut would."""
        self.dismissed = True
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)


@dataclass
class Heard:
    """What the workers told, by job."""

    started: Counter[int] = field(default_factory=Counter)
    completed: Counter[int] = field(default_factory=Counter)
    """Completions that the control plane accepted."""
    refused: list[tuple[int, int, str]] = field(default_factory=list)
    """(job_id, token, verb) of writes that came too late."""


class Crew:
    """All of them. Leaving the block ends every process that is left."""

    def __init__(self, folder: Path, target: str, schema: str, queue: str) -> None:
        self.heard = Heard()
        self.workers: list[WorkerProcess] = []
        self._folder = folder
        self._queue = queue
        # Not as arguments, which anybody on this host can read: the target may hold a password.
        self._environment = {**os.environ, "TENURE_DSN": target, "TENURE_SCHEMA": schema}
        self._lock = threading.Lock()
        self._kept: dict[Point, WorkerProcess] = {}
        self._readers: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.kill()
            if worker.process.stdin is not None:
                worker.process.stdin.close()
        for reader in self._readers:
            reader.join()

    def hire(self) -> WorkerProcess:
        """Start one more."""
        number = len(self.workers) + 1
        log = self._folder / f"worker-{number}.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "tenure.demo.worker", self._queue],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self._environment,
                start_new_session=True,  # Ctrl-C is for the driver, which ends its workers
            )
        worker = WorkerProcess(number, process, log)
        self.workers.append(worker)
        reader = threading.Thread(target=self._listen, args=[worker], daemon=True)
        self._readers.append(reader)
        reader.start()
        return worker

    def dismiss(self, seconds: float = 20.0) -> None:
        """Let them stop by themselves, and hear them out."""
        for worker in self.workers:
            worker.dismissed = True
            if worker.process.poll() is None:
                worker.process.terminate()
        deadline = time.monotonic() + seconds
        for worker in self.workers:
            try:
                worker.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise NotAsArranged(f"{worker.name} does not stop: {_end_of(worker.log)}") from None
            if worker.process.returncode not in (0, -signal.SIGKILL):
                raise NotAsArranged(f"{worker.name} did not stop well: {_end_of(worker.log)}")
        for reader in self._readers:
            reader.join()

    def waiting(self, point: Point) -> WorkerProcess | None:
        """The worker that is kept at this point: the first that came there."""
        with self._lock:
            return self._kept.get(point)

    def until(
        self,
        ready: Callable[[], bool],
        what: str,
        *,
        meanwhile: Callable[[], object] = lambda: None,
        seconds: float = 60.0,
    ) -> None:
        """Wait until something is so; raises `NotAsArranged` when it cannot become so any more."""
        deadline = time.monotonic() + seconds
        while not ready():
            for worker in self.workers:
                if not worker.dismissed and worker.process.poll() is not None:
                    raise NotAsArranged(f"{worker.name} ended by itself: {_end_of(worker.log)}")
            if time.monotonic() > deadline:
                raise NotAsArranged(f"after {seconds:g} s there is no sign that {what}")
            meanwhile()
            time.sleep(0.05)

    def _listen(self, worker: WorkerProcess) -> None:
        assert worker.process.stdout is not None
        with worker.process.stdout as raw, open(raw.fileno(), "rb", closefd=False) as lines:
            for line in lines:
                if line.endswith(b"\n"):  # else the process died while it wrote it
                    self._hear(worker, json.loads(line))

    def _hear(self, worker: WorkerProcess, event: dict[str, Any]) -> None:
        job_id = event["job_id"]
        with self._lock:
            if event["what"] == "waits":
                point = Point(event["point"])
                if self._kept.setdefault(point, worker) is not worker:
                    worker.cue(job_id, point)
            elif event["what"] == "refused":
                self.heard.refused.append((job_id, event["token"], event["verb"]))
            elif event["what"] == "completed":
                self.heard.completed[job_id] += 1
            else:
                self.heard.started[job_id] += 1


def _end_of(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return " | ".join(lines[-3:]) or "it wrote no log"
