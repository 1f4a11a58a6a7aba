"""The runner, over both backends: it drains, keeps what is long, goes on, and stops."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from tenure import (
    CancelRequested,
    InvalidArgument,
    Job,
    JobStatus,
    LeaseLost,
    NewJob,
    Tenure,
    Verdict,
    WorkerRunner,
)
from tests.runner.conftest import Start
from tests.runner.waiting import comes, ends, eventually, status_of

SHORT = timedelta(milliseconds=500)


def test_a_drain_runs_what_is_due_and_returns(app: Tenure) -> None:
    ran: Counter[int] = Counter()

    @app.task
    def count(job: Job) -> int:
        ran[job.payload] += 1
        return int(job.payload) * 2

    added = app.enqueue_many([app.new_job(count, n) for n in range(30)])
    later = app.enqueue(count, 99, delay=timedelta(hours=1))

    app.worker(slots=4).run_until_idle()

    assert ran == Counter(range(30))
    for n, answer in enumerate(added):
        record = app.job(answer.job_id)
        assert record is not None
        assert (record.status, record.result, record.attempt) == ("completed", n * 2, 1)
    assert status_of(app, later.job_id) is JobStatus.QUEUED


def test_a_drain_waits_for_a_job_that_is_queued_again_at_once(app: Tenure) -> None:
    attempts: list[tuple[int, str | None]] = []

    @app.task(retry_base=timedelta(0))
    def second_time_lucky(job: Job) -> None:
        attempts.append((job.attempt, job.last_error))
        if job.attempt == 1:
            raise RuntimeError("first")

    app.enqueue(second_time_lucky)

    app.worker().run_until_idle()

    assert attempts == [(1, None), (2, "RuntimeError: first")]


def test_one_failing_job_does_not_stop_the_loop(app: Tenure, start: Start) -> None:
    @app.task(max_attempts=1)
    def fails(job: Job) -> None:
        raise SystemExit(3)

    @app.task
    def works(job: Job) -> str:
        return "fine"

    start(slots=1)
    bad, good = app.enqueue(fails).job_id, app.enqueue(works).job_id

    ends(app, bad, JobStatus.FAILED)
    ends(app, good, JobStatus.COMPLETED)


def test_a_handler_longer_than_its_lease_keeps_its_job(app: Tenure, start: Start) -> None:
    released = threading.Event()
    starts: list[int] = []

    @app.task
    def long(job: Job) -> None:
        starts.append(job.attempt)
        begun = job.lease.lease_expires_at

        def was_extended() -> bool:
            record = app.job(job.job_id)
            return record is not None and (record.lease_expires_at or begun) - begun > 3 * SHORT

        eventually(was_extended, "the lease was extended by three times its length")
        assert released.wait(15)

    # The second one is idle, and sweeps all the time: it would have the job if it lapsed.
    start(lease_for=SHORT)
    start(lease_for=SHORT, sweep_every=timedelta(milliseconds=100))
    job_id = app.enqueue(long).job_id
    eventually(lambda: starts, "the job started")
    released.set()

    ends(app, job_id, JobStatus.COMPLETED)
    assert starts == [1]


def test_a_cancellation_reaches_the_handler(app: Tenure, start: Start) -> None:
    started = threading.Event()
    stopped: list[type[BaseException]] = []

    @app.task
    def until_cancelled(job: Job) -> None:
        started.set()
        try:
            eventually(lambda: job.check(), "the handler was told")
        except BaseException as error:
            stopped.append(type(error))
            raise

    start(lease_for=SHORT)
    job_id = app.enqueue(until_cancelled).job_id
    comes(started, "the job started")

    assert app.cancel(job_id).verdict is Verdict.OK

    ends(app, job_id, JobStatus.CANCELLED)
    assert stopped == [CancelRequested]


def test_a_handler_whose_job_was_given_to_another_is_told_and_writes_nothing(
    app: Tenure, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    started, let_go = threading.Event(), threading.Event()
    told: list[type[BaseException]] = []

    @app.task
    def overtaken(job: Job) -> str:
        if job.attempt > 1:
            return "second"
        started.set()
        assert let_go.wait(15)
        try:
            job.seal("first")
        except LeaseLost as error:
            told.append(type(error))
            raise
        return "first"

    runner = start(slots=2, lease_for=timedelta(seconds=30))
    job_id = app.enqueue(overtaken).job_id
    comes(started, "the job started")
    # Whoever shows the token may end the lease: here it is given back behind the runner's back.
    [held] = held_by(app, runner)
    with closing(app.store.control_plane()) as plane:
        plane.release(job_id, runner.worker_id, held.token, started=True)
    ends(app, job_id, JobStatus.COMPLETED)
    let_go.set()

    eventually(lambda: runner.running == 0, "the first attempt ended")
    record = app.job(job_id)
    assert record is not None
    assert (record.result, record.attempt, told) == ("second", 2, [LeaseLost])
    assert "its outcome is dropped" in caplog.text


def test_a_failing_sweep_does_not_stop_the_loop(app: Tenure, start: Start) -> None:
    @app.task
    def works(job: Job) -> None: ...

    runner = app.worker(sweep_every=timedelta(milliseconds=100))
    tried = threading.Event()

    def broken(limit: int) -> Any:
        tried.set()
        raise RuntimeError("no sweep today")

    runner.chores.sweep = broken  # type: ignore[method-assign]
    runner.start()
    try:
        comes(tried, "a sweep was tried")
        tried.clear()
        comes(tried, "a sweep was tried again")
        ends(app, app.enqueue(works).job_id, JobStatus.COMPLETED)
    finally:
        runner.stop()


def test_a_dead_workers_job_is_swept_while_every_slot_is_busy(app: Tenure, start: Start) -> None:
    let_go = threading.Event()

    @app.task
    def busy(job: Job) -> None:
        assert let_go.wait(15)

    orphan = app.enqueue("busy").job_id
    with closing(app.store.control_plane()) as plane:
        assert plane.claim_job(orphan, "dead", lease_for=timedelta(milliseconds=100))
    blocking = app.enqueue(busy).job_id
    runner = start(slots=1, sweep_every=timedelta(milliseconds=100))
    eventually(lambda: status_of(app, blocking) is JobStatus.RUNNING, "the slot was busy")

    eventually(lambda: status_of(app, orphan) is JobStatus.QUEUED, "the orphan was swept")

    assert status_of(app, blocking) is JobStatus.RUNNING
    assert runner.running == 1
    let_go.set()


def test_slots_are_counted_for_each_queue(app: Tenure, start: Start) -> None:
    let_go = threading.Event()
    lock = threading.Lock()
    now: Counter[str] = Counter()
    most: Counter[str] = Counter()

    @app.task
    def hold(job: Job) -> None:
        with lock:
            now[job.queue] += 1
            most[job.queue] = max(most[job.queue], now[job.queue])
        assert let_go.wait(15)
        with lock:
            now[job.queue] -= 1

    for queue in ("wide", "narrow"):
        app.enqueue_many([app.new_job(hold, queue=queue) for _ in range(6)])
    runner = start(queues={"wide": 4, "narrow": 1})
    eventually(lambda: runner.running == 5, "every slot was busy")
    let_go.set()
    eventually(lambda: runner.running == 0, "all jobs ended")

    assert most == {"wide": 4, "narrow": 1}


def test_two_solo_jobs_never_run_side_by_side(app: Tenure, start: Start) -> None:
    lock = threading.Lock()
    now: list[int] = []
    most: list[int] = []
    other = threading.Event()

    @app.task
    def suspect(job: Job) -> None:
        with lock:
            now.append(job.job_id)
            most.append(len(now))
        other.wait(0.3)
        with lock:
            now.remove(job.job_id)

    ids = [app.enqueue(suspect).job_id for _ in range(3)]
    # A lapse out of a batch makes them solo.
    with closing(app.store.control_plane()) as plane:
        leases = plane.claim(["default"], "dead", max_jobs=3, lease_for=timedelta(seconds=0.1))
        assert len(leases) == 3
        eventually(lambda: len(plane.lapsed()) == 3, "the leases lapsed")
        plane.sweep("sweeper")
    start(slots=3)

    for job_id in ids:
        ends(app, job_id, JobStatus.COMPLETED)
    assert max(most) == 1


def test_a_stop_lets_running_jobs_end_and_claims_no_more(app: Tenure, start: Start) -> None:
    started, let_go = threading.Event(), threading.Event()

    @app.task
    def slow(job: Job) -> str:
        started.set()
        assert let_go.wait(15)
        return "ended"

    runner = start(slots=1)
    running = app.enqueue(slow).job_id
    comes(started, "the job started")
    waiting = app.enqueue(slow).job_id
    stopping = threading.Thread(target=runner.stop)
    stopping.start()
    let_go.set()
    stopping.join(15)

    assert not stopping.is_alive()
    assert status_of(app, running) is JobStatus.COMPLETED
    assert status_of(app, waiting) is JobStatus.QUEUED


def test_what_runs_beyond_the_grace_is_handed_back_with_its_attempt_spent(
    app: Tenure, start: Start
) -> None:
    started, let_go = threading.Event(), threading.Event()
    told: list[type[BaseException]] = []

    @app.task
    def endless(job: Job) -> None:
        started.set()
        assert let_go.wait(15)
        try:
            job.check()
        except LeaseLost as error:
            told.append(type(error))
            raise

    runner = start()
    job_id = app.enqueue(endless).job_id
    comes(started, "the job started")

    runner.stop(timedelta(0))

    record = app.job(job_id)
    assert record is not None
    assert (record.status, record.attempt, record.worker_id) == ("queued", 1, None)
    with closing(app.store.control_plane()) as plane:
        assert plane.claim_job(job_id, "another") is not None
    let_go.set()
    eventually(lambda: told, "the handler was told")


def test_what_was_claimed_and_not_started_is_given_back_uncharged(
    app: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []

    @app.task
    def never(job: Job) -> None:
        ran.append(job.job_id)

    ids = [app.enqueue(never).job_id for _ in range(2)]
    runner = app.worker(slots=2)
    for slots in runner.slots:
        # A slot whose thread has not come round to the job.
        monkeypatch.setattr(slots, "_start", lambda standing: None)
    runner.start()
    eventually(lambda: runner.running == 2, "both jobs were claimed")

    runner.stop()

    for job_id in ids:
        record = app.job(job_id)
        assert record is not None
        assert (record.status, record.attempt) == ("queued", 0)
    assert ran == []


def test_the_runner_stops_twice_without_harm_and_also_before_it_started(app: Tenure) -> None:
    never_started = app.worker()
    never_started.stop()

    runner = app.worker()
    runner.start()
    runner.stop()
    runner.stop()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"poll_floor": timedelta(seconds=31)}, "poll_floor is out of range"),
        ({"slots": 0}, "slots is out of range"),
        ({"queues": []}, "queues has 0 members"),
        ({"queues": "default"}, "queues is one str"),
        ({"queues": {"default": 0}}, r"queues\['default'\] is out of range"),
        ({"lease_for": timedelta(milliseconds=99)}, "lease_for is out of range"),
        ({"grace": timedelta(seconds=-1)}, "grace is out of range"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    sqlite_app: Tenure, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        sqlite_app.worker(**options)


def test_jobs_of_other_queues_are_left_alone(app: Tenure) -> None:
    @app.task
    def work(job: Job) -> None: ...

    mine, other = app.enqueue(work), app.enqueue(work, queue="other")

    app.worker(queues=["default"]).run_until_idle()

    assert status_of(app, mine.job_id) is JobStatus.COMPLETED
    assert status_of(app, other.job_id) is JobStatus.QUEUED


def held_by(app: Tenure, runner: WorkerRunner) -> list[Any]:
    with closing(app.store.control_plane()) as plane:
        return list(plane.held(runner.worker_id))


def test_new_jobs_are_of_the_kind_and_settings_of_their_task(app: Tenure) -> None:
    @app.task(name="mail", queue="slow", priority=2, max_attempts=9)
    def send(job: Job) -> None: ...

    assert app.new_job(send, [1], priority=0) == NewJob(
        kind="mail", queue="slow", payload=[1], priority=0, max_attempts=9
    )
