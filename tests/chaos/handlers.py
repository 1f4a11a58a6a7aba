"""Handlers of every temper; each notes that it was started, and returns who it was."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from datetime import timedelta
from typing import Any

from tenure import Cancel, Fail, Hooks, Job, NewJob, Release, Tenure
from tests.chaos.journal import note_lost, note_start

QUEUES = {"quick": 8, "slow": 4}
EFFECT = "insert into {} (job_id, token, worker_id, child_id) values ({}, {}, {}, {})"


def app_of(target: str) -> Tenure:
    """The app of every process of a soak."""
    app = Tenure(target, hooks=Hooks(lost=lambda event: note_lost(event.lease)))
    for handler in (noop, receipt, flaky, stubborn, hopeless, walks, giver, undone, poison, ledger):
        app.task(queue="quick")(handler)
    for handler in (nap, sealed):
        app.task(queue="slow")(handler)
    app.task(queue="slow")(anap)
    app.task(name="overdue", queue="slow")(nap)  # its jobs have a timeout that is too short
    app.task(queue="slow", slots="process")(crash)
    return app


def _start(job: Job) -> dict[str, Any]:
    note_start(job.lease)
    return {"token": job.token, "worker_id": job.worker_id}


def noop(job: Job) -> Any:
    return _start(job)


def receipt(job: Job) -> Any:
    """Enqueued by `ledger`, in the transaction that completes it."""
    return _start(job)


def nap(job: Job) -> Any:
    """Takes as many seconds as the payload says; half of them ask whether to go on."""
    result, end = _start(job), time.monotonic() + job.payload["seconds"]
    while time.monotonic() < end:
        if job.payload["asks"]:
            job.check()
        time.sleep(0.05)
    return result


async def anap(job: Job) -> Any:
    result = _start(job)
    await asyncio.sleep(job.payload["seconds"])
    return result


def flaky(job: Job) -> Any:
    """Fails as often as the payload says."""
    result = _start(job)
    if job.attempt <= job.payload["fails"]:
        raise RuntimeError("not yet")
    return result


def stubborn(job: Job) -> Any:
    _start(job)
    raise RuntimeError("never")


def hopeless(job: Job) -> Any:
    _start(job)
    raise Fail("for good")


def walks(job: Job) -> Any:
    """Notes its progress, which is its token."""
    result = _start(job)
    for _ in range(3):
        job.progress(job.token)
        time.sleep(0.02)
    return result


def giver(job: Job) -> Any:
    result = _start(job)
    if job.attempt == 1:
        raise Release(after=timedelta(seconds=0.1))
    return result


def undone(job: Job) -> Any:
    _start(job)
    raise Cancel("there is nothing to do")


def sealed(job: Job) -> Any:
    """Dies between the seal and the end as often as it is killed there."""
    result = _start(job)
    job.seal({**result, "sealed": True})
    time.sleep(job.payload["seconds"])
    return "what a handler returns after the seal is ignored"


def poison(job: Job) -> None:
    _start(job)
    os.kill(os.getpid(), signal.SIGKILL)


def crash(job: Job) -> Any:
    """Kills the child process that it runs in, the first time."""
    result = _start(job)
    if job.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return result


def ledger(job: Job) -> None:
    """Writes a row and enqueues a job, in the transaction that completes it."""
    result = _start(job)
    postgres = _app.store.kind == "postgresql"
    table, mark = ("audit.effect", "%s") if postgres else ("audit_effect", "?")
    with job.transaction() as connection:
        child = _app.enqueue(receipt, connection=connection)
        values = [job.job_id, job.token, job.worker_id, child.job_id]
        connection.execute(EFFECT.format(table, *[mark] * 4), values)
        job.set_result(result)


_app: Tenure
"""The app of this process, for handlers that enqueue."""


def serve(app: Tenure) -> None:
    """Make this the app with which handlers enqueue."""
    global _app
    _app = app


def new_job(kind: str, payload: dict[str, Any], **given: Any) -> NewJob:
    """A job of one of these kinds, with short pauses between its attempts."""
    return NewJob(
        kind=kind,
        payload=payload,
        queue="slow" if kind in ("nap", "anap", "sealed", "overdue", "crash") else "quick",
        retry_base=timedelta(seconds=0.1),
        retry_cap=timedelta(seconds=0.5),
        **given,
    )
