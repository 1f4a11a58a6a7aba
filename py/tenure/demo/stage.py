"""A worker's side of the arrangements: it tells what happens, and waits where it is told to."""

from __future__ import annotations

import json
import os
import threading
from collections import defaultdict
from collections.abc import Callable
from enum import StrEnum
from io import RawIOBase
from typing import Protocol

LONGEST_WAIT = 60.0
"""Seconds; a cue that never comes must not keep a job for ever."""


class Point(StrEnum):
    """Where a job can be made to wait."""

    RUNNING = "running"
    """In the handler, looking whether it was cancelled."""
    SEALED = "sealed"
    """After its outcome was sealed, before it is completed."""
    SEALING = "sealing"
    """With the seal decided and not yet sent, as if it were under way for long."""


class Tokened(Protocol):
    """What the driver is told of: a lease or a job under a token."""

    @property
    def job_id(self) -> int: ...
    @property
    def token(self) -> int: ...


class Stage:
    """Lines of JSON to the driver through one pipe, cues from it through another. Threads: any."""

    def __init__(self, out: int, cues: RawIOBase) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._given: defaultdict[tuple[int, str], threading.Event] = defaultdict(threading.Event)
        self._held: set[tuple[int, int]] = set()
        threading.Thread(target=self._listen, args=[cues], name="demo-cues", daemon=True).start()

    def tell(self, what: str, about: Tokened, **more: object) -> None:
        event = {"what": what, "job_id": about.job_id, "token": about.token, **more}
        with self._lock:
            os.write(self._out, json.dumps(event).encode() + b"\n")

    def wait(self, point: Point, about: Tokened, check: Callable[[], object] | None = None) -> None:
        """Wait for the cue; `check`, called many times a second, may raise instead."""
        cue = self._cue(about.job_id, point)
        cue.clear()
        self.tell("waits", about, point=point)
        if check is None:
            cue.wait(LONGEST_WAIT)
            return
        for _ in range(int(LONGEST_WAIT / 0.02)):
            if cue.wait(0.02):
                return
            check()

    def hold_seal(self, about: Tokened) -> None:
        """Let the seal of this lease wait at `Point.SEALING`."""
        self._held.add((about.job_id, about.token))

    def is_held(self, job_id: int, token: int) -> bool:
        return (job_id, token) in self._held

    def _cue(self, job_id: int, point: str) -> threading.Event:
        with self._lock:
            return self._given[job_id, point]

    def _listen(self, cues: RawIOBase) -> None:
        for line in cues:
            cue = json.loads(line)
            self._cue(cue["job_id"], cue["point"]).set()
        os._exit(1)  # the driver is gone
