"""A worker process of the demo."""

from __future__ import annotations

import functools
import logging
import os
import sys
import warnings
from datetime import timedelta
from io import FileIO

from tenure.app import Tenure
from tenure.backing import backing_of
from tenure.demo.analyse import KIND, analyse
from tenure.demo.stage import Stage
from tenure.demo.witness import WitnessedBacking
from tenure.runner import WorkerRunner

LEASE_FOR = timedelta(seconds=2)
SWEEP_EVERY = timedelta(milliseconds=400)
SLOTS = 4


def main(queue: str) -> None:
    """Work off a queue until SIGTERM, telling the driver on standard output."""
    # Old sources warn when they are parsed.
    warnings.simplefilter("ignore")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    # Unbuffered: a thread inside a buffered read would keep the interpreter from ending.
    cues = FileIO(sys.stdin.fileno(), closefd=False)
    stage = Stage(sys.stdout.fileno(), cues)
    with Tenure(os.environ["TENURE_DSN"], schema=os.environ["TENURE_SCHEMA"]) as app:
        app.task(name=KIND, queue=queue)(functools.partial(analyse, stage=stage))
        WorkerRunner(
            WitnessedBacking(backing_of(app.store), stage),
            app.tasks,
            queues=[queue],
            slots=SLOTS,
            lease_for=LEASE_FOR,
            sweep_every=SWEEP_EVERY,
        ).run_forever()


if __name__ == "__main__":
    main(sys.argv[1])
