"""Handlers that a child process finds by name."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tenure import CancelRequested, Job, LeaseLost
from tests.runner.waiting import eventually

logger = logging.getLogger("app")


def note(job: Job, word: object = "started") -> None:
    """One line in the file that the payload names; tests wait for it."""
    with Path(job.payload["notes"]).open("a") as file:
        file.write(f"{word}\n")


def notes(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def pid(job: Job) -> int:
    note(job)
    return os.getpid()


def in_main_thread(job: Job) -> bool:
    return threading.current_thread() is threading.main_thread()


def talks(job: Job) -> str:
    job.check()
    assert job.progress({"done": 1})
    job.seal({"result": "sealed"})
    return "ignored"


def sealed_then_killed(job: Job) -> None:
    job.seal("sealed")
    os.kill(os.getpid(), signal.SIGKILL)


def poison(job: Job) -> None:
    note(job, job.attempt)
    os.kill(os.getpid(), signal.SIGKILL)


def once_killed(job: Job) -> list[Any]:
    if job.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return [job.attempt, job.last_error]


def leaves(job: Job) -> None:
    os._exit(3)


def raises(job: Job) -> None:
    known: dict[str, BaseException] = {
        "SystemExit": SystemExit(3),
        "KeyboardInterrupt": KeyboardInterrupt(),
        "GeneratorExit": GeneratorExit(),
        "CancelledError": asyncio.CancelledError(),
        "MemoryError": MemoryError(),
        "LookupError": LookupError("not there"),
    }
    raise known[job.payload]


def odd_result(job: Job) -> object:
    return {"at": object()}


def holds_the_interpreter(job: Job) -> int:
    note(job, job.attempt)
    ctypes.PyDLL(None).usleep(int(job.payload["seconds"] * 1e6))
    return job.attempt


def until_told(job: Job) -> None:
    note(job)
    try:
        eventually(lambda: job.check(), "the handler was told")
    except (CancelRequested, LeaseLost) as error:
        note(job, type(error).__name__)
        raise


async def until_told_async(job: Job) -> None:
    note(job)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        note(job, "CancelledError")
        raise


def until_let_go(job: Job) -> str:
    """Ends once there is a file of this name."""
    note(job, os.getpid())
    eventually(Path(job.payload["let_go"]).exists, "it was let go")
    return "ended"


def sleeps(job: Job) -> None:
    note(job, os.getpid())
    time.sleep(3600)


def deaf(job: Job) -> None:
    note(job, os.getpid())
    while True:
        try:
            time.sleep(3600)
        except Exception:
            note(job, "deaf")


def logs(job: Job) -> None:
    logger.warning("a word of job %d", job.job_id, extra={"job_id": job.job_id})


def writes(job: Job) -> None:
    with job.transaction() as connection:
        connection.execute("create table receipts (row text)")
        connection.execute("insert into receipts values ('paid')")
        job.set_result("receipt")


def prints(job: Job) -> None:
    sys.stdout.write("said on standard output\n")
