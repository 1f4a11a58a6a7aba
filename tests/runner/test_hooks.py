"""What a runner tells about its jobs: hooks for metrics, log lines for people."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest

from tenure import Cancel, Hooks, Job, JobEvent, JobStatus, Release, Tenure, WorkerRunner
from tests.runner.conftest import Start
from tests.runner.waiting import comes, ends, eventually

HOUR = timedelta(hours=1)
NAMES = [field.name for field in fields(Hooks)]


class Heard:
    """Keeps what it is told, by job."""

    def __init__(self) -> None:
        self.events: dict[int, list[JobEvent]] = defaultdict(list)
        self.hooks = Hooks(**dict.fromkeys(NAMES, self._hear))

    def _hear(self, event: JobEvent) -> None:
        self.events[event.lease.job_id].append(event)

    def names(self, job_id: int) -> list[str]:
        return [event.name for event in self.events[job_id]]


@pytest.fixture
def heard() -> Heard:
    return Heard()


def test_each_job_is_told_of_when_it_is_claimed_started_and_ended(
    app: Tenure, heard: Heard
) -> None:
    @app.task(name="completes")
    def completes(job: Job) -> str:
        return "fine"

    @app.task(name="fails", retry_base=HOUR)
    def fails(job: Job) -> None:
        raise OSError("refused")

    @app.task(name="fails for good", max_attempts=1)
    def fails_for_good(job: Job) -> None:
        raise OSError("refused")

    @app.task(name="cancels")
    def cancels(job: Job) -> None:
        raise Cancel("pointless")

    @app.task(name="releases")
    def releases(job: Job) -> None:
        raise Release(after=HOUR)

    @app.task(name="completes in its transaction")
    def in_transaction(job: Job) -> None:
        with job.transaction():
            pass

    told = {
        "completes": ("completed", JobStatus.COMPLETED),
        "fails": ("failed", JobStatus.QUEUED),
        "fails for good": ("failed", JobStatus.FAILED),
        "cancels": ("cancelled", JobStatus.CANCELLED),
        "releases": ("released", JobStatus.QUEUED),
        "completes in its transaction": ("completed", JobStatus.COMPLETED),
    }
    ids = {kind: app.enqueue(kind).job_id for kind in told}
    unknown = app.enqueue("nobody knows").job_id

    app.worker(slots=2, hooks=heard.hooks).run_until_idle()

    for kind, (name, status) in told.items():
        claimed, started, ended = heard.events[ids[kind]]
        assert [claimed.name, started.name, ended.name] == ["claimed", "started", name], kind
        assert (ended.status, ended.lease.kind, ended.lease.attempt) == (status, kind, 1)
        assert claimed.seconds is started.seconds is None
        assert ended.seconds is not None
        assert (ended.failure is not None) == (kind in ("fails", "fails for good", "cancels"))
    assert heard.names(unknown) == ["claimed", "released"]


def test_a_lost_lease_is_told_of_once(app: Tenure, start: Start, heard: Heard) -> None:
    started, let_go = threading.Event(), threading.Event()

    @app.task(timeout=timedelta(seconds=0.3))
    def hangs(job: Job) -> None:
        started.set()
        assert let_go.wait(15)

    runner = start(hooks=heard.hooks, sweep_every=timedelta(minutes=5))
    job_id = app.enqueue(hangs, retry_base=HOUR).job_id
    comes(started, "the job started")
    with closing(app.store.control_plane()) as plane:
        eventually(lambda: plane.sweep("somebody"), "the lease lapsed and was swept")
    let_go.set()

    eventually(lambda: "lost" in heard.names(job_id), "the loss was told")
    runner.stop()
    # It came out of a batch, so it was queued again at once, and may have been had again.
    by_token = [e.name for e in heard.events[job_id] if e.lease.token == 1]
    assert by_token == ["claimed", "started", "lost"]


def test_what_is_given_back_when_a_runner_stops_is_told_of(app: Tenure, heard: Heard) -> None:
    started, let_go = threading.Event(), threading.Event()

    @app.task
    def endless(job: Job) -> None:
        started.set()
        let_go.wait(15)

    job_id = app.enqueue(endless).job_id
    runner = app.worker(hooks=heard.hooks)
    runner.start()
    comes(started, "the job started")
    runner.stop(timedelta(0))
    let_go.set()

    ends(app, job_id, JobStatus.QUEUED)
    assert heard.names(job_id) == ["claimed", "started", "released"]


@pytest.mark.parametrize("name", NAMES)
def test_a_hook_that_raises_is_logged_and_harmless(
    sqlite_app: Tenure, heard: Heard, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(event: JobEvent) -> None:
        raise RuntimeError("the metrics are down")

    @sqlite_app.task(name="completed")
    def completes(job: Job) -> str:
        return "fine"

    @sqlite_app.task(name="failed", max_attempts=1)
    def fails(job: Job) -> None:
        raise OSError("refused")

    @sqlite_app.task(name="cancelled")
    def cancels(job: Job) -> None:
        raise Cancel("pointless")

    @sqlite_app.task(name="released")
    def releases(job: Job) -> None:
        raise Release(after=HOUR)

    kinds = ["completed", "failed", "cancelled", "released"]
    ids = {kind: sqlite_app.enqueue(kind).job_id for kind in kinds}
    hooks = Hooks(**{name: broken})

    sqlite_app.worker(hooks=hooks).run_until_idle()

    for kind, job_id in ids.items():
        record = sqlite_app.job(job_id)
        assert record is not None
        assert record.status == ("queued" if kind == "released" else kind)
    said = [r for r in caplog.records if "the hook" in r.getMessage()]
    assert bool(said) == (name != "lost")
    assert all(hasattr(r, "job_id") for r in said)


def test_the_hooks_of_an_app_are_those_of_its_workers(tmp_path: Any, heard: Heard) -> None:
    with Tenure(tmp_path / "jobs.db", hooks=heard.hooks) as app:
        app.task(name="work")(lambda job: None)
        job_id = app.enqueue("work").job_id
        app.worker().run_until_idle()

    assert heard.names(job_id) == ["claimed", "started", "completed"]


SECRET = "4242 4242 4242 4242"


def test_no_log_line_of_a_runner_shows_a_payload_and_each_names_its_job(
    app: Tenure, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor a result, a progress or a meta, at any level, however the job ends."""
    caplog.set_level(logging.DEBUG, logger="tenure")
    lost, let_go = threading.Event(), threading.Event()

    def ending(end: Callable[[Job], Any]) -> Callable[[Job], Any]:
        def handler(job: Job) -> Any:
            job.progress({"card": job.payload})
            return end(job)

        return handler

    def fails(job: Job) -> None:
        raise OSError("refused")

    def cancels(job: Job) -> None:
        raise Cancel("pointless")

    def releases(job: Job) -> None:
        raise Release("later", after=HOUR)

    def is_overtaken(job: Job) -> None:
        lost.set()
        assert let_go.wait(15)

    def is_not_storable(job: Job) -> Any:
        return {"card": {SECRET}}

    def seals(job: Job) -> None:
        job.seal({"card": job.payload})
        raise OSError("while cleaning up")

    ends_by = [lambda job: job.payload, fails, cancels, releases, is_not_storable, seals]
    for number, end in enumerate(ends_by):
        app.task(name=f"kind {number}", retry_base=HOUR)(ending(end))
    app.task(name="overtaken", timeout=timedelta(seconds=0.3))(is_overtaken)
    kinds = [*(f"kind {number}" for number in range(len(ends_by))), "unknown", "overtaken"]

    runner = start(sweep_every=timedelta(milliseconds=100))
    for kind in kinds:
        app.enqueue(kind, SECRET, meta={"card": SECRET}, retry_base=HOUR)
    comes(lost, "the last one started")
    eventually(lambda: "swept" in caplog.text, "its lease was swept")
    let_go.set()
    eventually(lambda: runner.running == 0, "all have ended")
    runner.stop()

    records = [r for r in caplog.records if r.name.startswith("tenure")]
    assert records
    for record in records:
        whole = f"{record.getMessage()} {record.exc_text} {vars(record)}"
        assert SECRET not in whole, record
        if " job " in record.getMessage():
            assert {"job_id", "kind", "attempt", "worker_id"} <= set(vars(record)), record
    named = {getattr(record, "kind", None) for record in records}
    assert {"kind 1", "kind 2", "kind 3", "kind 5", "unknown", "overtaken"} <= named


def test_a_runner_without_hooks_calls_nothing_for_them(sqlite_app: Tenure) -> None:
    """It costs nothing when absent: no place is left from which anything could be told."""
    runner: WorkerRunner = sqlite_app.worker()

    assert runner._telling is None
    assert runner._ended is None
