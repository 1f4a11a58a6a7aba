"""A runner of the soak: python -m tests.chaos.runner_process TARGET."""

from __future__ import annotations

import logging
import sys
from datetime import timedelta

from tests.chaos import handlers

LEASE_FOR = timedelta(seconds=1.5)
SWEEP_EVERY = timedelta(seconds=0.4)
GRACE = timedelta(seconds=5)

if __name__ == "__main__":
    logging.basicConfig(format="%(relativeCreated)d %(name)s %(message)s", stream=sys.stderr)
    logging.getLogger("tenure.worker").setLevel(logging.ERROR)
    with handlers.app_of(sys.argv[1]) as app:
        handlers.serve(app)
        app.worker(
            queues=handlers.QUEUES, lease_for=LEASE_FOR, sweep_every=SWEEP_EVERY, grace=GRACE
        ).run_forever()
