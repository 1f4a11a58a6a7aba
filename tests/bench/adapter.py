"""The driver's end of an adapter program."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.bench.server import cpu

ROOT = Path(__file__).resolve().parents[2]


class AdapterFailed(Exception):
    """An adapter program answered with an error, ended, or kept silent for too long."""


class Adapter:
    """One process of one peer, told by lines of JSON what to do."""

    def __init__(
        self, command: Sequence[str], log: Path, *, dsn: Mapping[str, str], cwd: Path = ROOT
    ) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env={**_environment(), **dsn},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, do: str, **arguments: Any) -> None:
        """Begin a command; `answer` waits for its end."""
        assert self._process.stdin is not None
        try:
            print(json.dumps({"do": do, **arguments}), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise AdapterFailed(f"ended: {self._end_of_log()}") from None

    @property
    def answered(self) -> bool:
        """Whether `answer` would not wait."""
        return not self._answers.empty()

    def answer(self, timeout: float = 120) -> dict[str, Any]:
        try:
            line = self._answers.get(timeout=timeout)
        except queue.Empty:
            raise AdapterFailed(f"no answer within {timeout:.0f} s") from None
        if not line:
            raise AdapterFailed(f"ended: {self._end_of_log()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise AdapterFailed(answer["error"])
        return answer

    def ask(self, do: str, *, timeout: float = 120, **arguments: Any) -> dict[str, Any]:
        self.send(do, **arguments)
        return self.answer(timeout)

    def cpu(self) -> float:
        """Seconds that the process used so far."""
        return cpu(self._process.pid)

    def close(self) -> None:
        """End the process: by the end of its input if it listens, else by force."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._answers.put(line)
        self._answers.put("")

    def _end_of_log(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "without a word"


@contextlib.contextmanager
def several(adapters: Sequence[Adapter]) -> Iterator[Sequence[Adapter]]:
    """Close all of them at the end."""
    with contextlib.ExitStack() as stack:
        for adapter in adapters:
            stack.enter_context(adapter)
        yield adapters


def _environment() -> dict[str, str]:
    # What is set for other servers and other checkouts must not reach a peer.
    ours = ("PG", "TENURE_", "PYTHON")
    return {k: v for k, v in os.environ.items() if not k.startswith(ours)}
