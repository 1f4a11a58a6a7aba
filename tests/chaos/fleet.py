"""Runner processes that are killed, stopped for a while and started again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.chaos.journal import FOLDER

ROOT = Path(__file__).resolve().parents[2]
STOPPED_FOR = (2.0, 3.5)
"""Seconds: more than a lease, so that another worker gets the jobs meanwhile."""
STARTS_IN = 10.0
"""Seconds within which SIGTERM may find a process that does not know it yet."""


class Fleet:
    """Keeps a number of runners alive; counts what it does to them. One thread."""

    def __init__(self, target: str, folder: Path, *, size: int, seed: int) -> None:
        self._target = target
        self._folder = folder
        self._random = random.Random(seed)
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * size
        self._stopped: dict[int, float] = {}
        self.counts: Counter[str] = Counter()
        self._killed: set[int] = set()
        self._born: dict[int, float] = {}
        self.complaints: list[str] = []

    def tend(self) -> None:
        """Start what is not there, and let go on what was stopped for long enough."""
        for place, process in enumerate(self._processes):
            if process is None or (code := process.poll()) is not None:
                if process is not None:
                    self._bury(process, code)
                self._processes[place] = self._spawn()
        for place, until in list(self._stopped.items()):
            if time.monotonic() >= until:
                self._go_on(place)

    def strike(self) -> None:
        """Kill or stop one of those that run."""
        running = [
            place
            for place, process in enumerate(self._processes)
            if process is not None and process.poll() is None and place not in self._stopped
        ]
        if not running:
            return
        place = self._random.choice(running)
        process = self._processes[place]
        assert process is not None
        if len(self._stopped) < len(self._processes) - 1 and self._random.random() < 0.4:
            process.send_signal(signal.SIGSTOP)
            self._stopped[place] = time.monotonic() + self._random.uniform(*STOPPED_FOR)
            self.counts["stops"] += 1
        else:
            self._killed.add(process.pid)
            process.kill()
            self.counts["kills"] += 1

    def go_on(self) -> None:
        """Let go on all that were stopped."""
        for place in list(self._stopped):
            self._go_on(place)

    def end(self, patience: float) -> None:
        """Stop all of them as an operator would, and complain of those that do not end well."""
        self.go_on()
        running = [p for p in self._processes if p is not None and p.poll() is None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + patience
        for process in running:
            try:
                code = process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.complaints.append(f"a runner did not stop within {patience:g} s of SIGTERM")
            else:
                started = self._born[process.pid] + STARTS_IN < time.monotonic()
                if code and (started or code != -signal.SIGTERM):
                    self.complaints.append(f"a runner ended with {code} after SIGTERM")
        self.close()

    def close(self) -> None:
        """Kill what is left."""
        for process in self._processes:
            if process is not None:
                process.kill()
                process.wait()

    def _go_on(self, place: int) -> None:
        del self._stopped[place]
        process = self._processes[place]
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGCONT)

    def _bury(self, process: subprocess.Popen[bytes], code: int | None) -> None:
        if process.pid in self._killed:
            return
        if code == -signal.SIGKILL:
            self.counts["poisoned"] += 1
        else:
            # A runner that starts while the server is away says so, and is started again.
            self.counts["could not start"] += 1

    def _spawn(self) -> subprocess.Popen[bytes]:
        self.counts["spawned"] += 1
        with (self._folder / "runners.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.runner_process", self._target],
                cwd=ROOT,
                env=os.environ | {FOLDER: str(self._folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._born[process.pid] = time.monotonic()
        return process
