"""A worker process for the tests: python -m tests.runner.worker_process TARGET OPTIONS.

OPTIONS is JSON: the options of a runner, durations in seconds. Besides, `ahead`: how many jobs
to claim in advance, as if the handlers had been quick; `gate`: the kind whose jobs wait, once
started, for a line on standard input. It says on standard output which jobs it starts, as
`kind job_id attempt`, and `returned` when it returns.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from datetime import timedelta
from typing import Any

from tenure import Job, Tenure
from tenure.slots import Slots

DURATIONS = ("grace", "lease_for", "sweep_every", "poll_floor")

target, text = sys.argv[1:]
given: dict[str, Any] = json.loads(text)
ahead, gate = given.pop("ahead", None), given.pop("gate", None)
app = Tenure(target)


def say(*words: object) -> None:
    # One write: lines of several threads do not mix.
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def starts(job: Job) -> None:
    say(job.kind, job.job_id, job.attempt)
    if job.kind == gate:
        sys.stdin.readline()


@app.task
def until_stopping(job: Job) -> str:
    """Ends as soon as the process has begun to stop."""
    starts(job)
    while not runner.stopping:
        threading.Event().wait(0.01)
    return "ended in time"


@app.task
def endless(job: Job) -> None:
    starts(job)
    threading.Event().wait()


@app.task
def nap(job: Job) -> str:
    """Takes as many seconds as the payload says."""
    starts(job)
    time.sleep(job.payload or 0)
    return "slept"


@app.task
def fails(job: Job) -> None:
    starts(job)
    raise RuntimeError("as it was told to")


@app.task
def leaves(job: Job) -> None:
    """Raises what the payload names."""
    starts(job)
    known: dict[str, BaseException] = {
        "SystemExit": SystemExit(3),
        "KeyboardInterrupt": KeyboardInterrupt(),
        "GeneratorExit": GeneratorExit(),
    }
    raise known[job.payload]


@app.task
def poison(job: Job) -> None:
    """Kills the process that runs it."""
    starts(job)
    os.kill(os.getpid(), signal.SIGKILL)


logging.basicConfig(level=logging.INFO, stream=sys.stderr)
if ahead is not None:
    Slots._learn_pace = lambda slots: setattr(slots, "_ahead", ahead)  # type: ignore[method-assign, assignment]
runner = app.worker(**{k: timedelta(seconds=v) if k in DURATIONS else v for k, v in given.items()})
runner.run_forever()
say("returned")
