"""A worker process for the tests: python -m tests.runner.worker_process DSN GRACE."""

from __future__ import annotations

import logging
import sys
import threading
from datetime import timedelta

from tenure import Job, Tenure

target, grace = sys.argv[1:]
app = Tenure(target)


def say(word: str) -> None:
    print(word, flush=True)


@app.task
def until_stopping(job: Job) -> str:
    """Ends as soon as the process has begun to stop."""
    say("started")
    while not runner.stopping:
        threading.Event().wait(0.01)
    return "ended in time"


@app.task
def endless(job: Job) -> None:
    say("started")
    threading.Event().wait()


logging.basicConfig(level=logging.INFO, stream=sys.stderr)
runner = app.worker(slots=1, grace=timedelta(seconds=float(grace)))
runner.run_forever()
say("returned")
