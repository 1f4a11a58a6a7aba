"""Worker processes of an app, and what they say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

from tests.runner.waiting import PATIENCE, eventually

ROOT = Path(__file__).resolve().parents[2]
PYTHON = [sys.executable, "-m", "tests.runner.worker_process"]


class WorkerProcess:
    """One process; `said` and `logged` grow as it speaks."""

    def __init__(
        self, target: str, options: dict[str, Any], *, under: tuple[str, ...] = ()
    ) -> None:
        self.process = subprocess.Popen(
            [*under, *PYTHON, target, json.dumps(options)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []
        self.logged: list[str] = []
        self._readers = [
            self._read(self.process.stdout, self.said),
            self._read(self.process.stderr, self.logged),
        ]

    @property
    def dead(self) -> bool:
        return self.process.poll() is not None

    def starts_of(self, kind: str) -> int:
        return sum(line.split()[0] == kind for line in list(self.said))

    def waits_for(self, kind: str, times: int = 1) -> None:
        """Wait until it started so many jobs of a kind."""
        eventually(lambda: self.starts_of(kind) >= times, f"{kind} started {times} times")

    def logs(self, words: str) -> None:
        eventually(lambda: any(words in line for line in list(self.logged)), f"it logged {words}")

    def says(self, line: str) -> None:
        """Say something to it; see `gate`."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def signal(self, number: signal.Signals, *, to: int | None = None) -> None:
        os.kill(to or self.process.pid, number)

    def ends(self) -> int:
        """Its exit code; everything it said has been read then."""
        code = self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
        return code

    def close(self) -> None:
        self.process.kill()
        self.ends()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    @staticmethod
    def _read(stream: IO[str] | None, lines: list[str]) -> threading.Thread:
        assert stream is not None

        def read() -> None:
            lines.extend(line.rstrip("\n") for line in stream)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread
