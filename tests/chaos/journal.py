"""What handlers note outside of the database: a file per process, appended in single writes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from tenure.values import JobLease
from tests.chaos.history import Start

FOLDER = "TENURE_SOAK_JOURNALS"
"""The variable that names the folder, also to children of a runner."""

_open: dict[int, int] = {}


def note_start(lease: JobLease) -> None:
    """The first thing that a handler does. What was written survives a kill of the process."""
    _note("start", lease)


def note_lost(lease: JobLease) -> None:
    _note("lost", lease)


def read(folder: Path) -> tuple[list[Start], int]:
    """All starts, and how many leases were lost."""
    lines = [line.split(" ", 3) for line in _lines(folder)]
    starts = [
        Start(int(job), int(token), worker) for what, job, token, worker in lines if what == "start"
    ]
    return starts, sum(line[0] == "lost" for line in lines)


def writers_alive(folder: Path, patience: float = 10.0) -> list[int]:
    """The processes that still live of those that wrote here, after a wait for them to end."""
    deadline = time.monotonic() + patience
    while (left := [pid for pid in _writers(folder) if _lives(pid, folder)]) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.05)
    return left


def _writers(folder: Path) -> list[int]:
    return [int(path.stem) for path in folder.glob("*.journal")]


def _lives(pid: int, folder: Path) -> bool:
    """By the variable in its environment, for numbers of processes are used again."""
    try:
        return str(folder).encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # gone, or this is no Linux
        return False


def _note(what: str, lease: JobLease) -> None:
    pid = os.getpid()
    if pid not in _open:
        path = Path(os.environ[FOLDER]) / f"{pid}.journal"
        _open[pid] = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    line = f"{what} {lease.job_id} {lease.token} {lease.worker_id}\n"
    os.write(_open[pid], line.encode())


def _lines(folder: Path) -> Iterator[str]:
    for path in folder.glob("*.journal"):
        yield from path.read_text("utf-8").splitlines()
