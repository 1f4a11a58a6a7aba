"""A program with a handler of its own in a child: python -m tests.runner.process_program TARGET."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from tenure import Job, Tenure
from tests.runner.waiting import eventually

app = Tenure(sys.argv[1])


@app.task(slots="process")
def until_let_go(job: Job) -> str:
    """Ends once there is a file of the name that the payload gives."""
    print("started", os.getpid(), flush=True)
    eventually(Path(job.payload).exists, "it was let go")
    return "ended"


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    app.worker(slots=1).run_forever()
    print("returned", flush=True)
