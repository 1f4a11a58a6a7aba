"""Waiting for something that must come, and failing when it does not.

Child processes import it, so it does without pytest.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tenure import JobStatus, Tenure

PATIENCE = 15.0
"""Seconds after which a test gives up; nothing is decided by it."""


def eventually(holds: Callable[[], object], what: str) -> None:
    end, pause = time.monotonic() + PATIENCE, 0.001
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"it never came true that {what}")
        time.sleep(pause)
        pause = min(2 * pause, 0.016)


def comes(event: threading.Event, what: str) -> None:
    if not event.wait(PATIENCE):
        raise AssertionError(f"it never happened that {what}")


def status_of(app: Tenure, job_id: int) -> JobStatus:
    record = app.job(job_id)
    assert record is not None
    return record.status


def ends(app: Tenure, job_id: int, status: JobStatus) -> None:
    eventually(lambda: status_of(app, job_id) is status, f"job {job_id} was {status}")
