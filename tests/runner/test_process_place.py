"""Handlers in child processes: what crosses, who dies of what, what survives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tenure import InvalidArgument, Job, JobStatus, Tenure, WorkerRunner
from tests.runner import process_tasks
from tests.runner.conftest import Start
from tests.runner.process_tasks import notes
from tests.runner.waiting import PATIENCE, ends, eventually, status_of

ROOT = Path(__file__).resolve().parents[2]
NONE = timedelta(0)


def has_ended(pid: int) -> bool:
    """Whether the process runs no more; one that nobody has reaped runs no more either."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes"


def payload(path: Path, **more: Any) -> dict[str, Any]:
    return {"notes": str(path), **more}


def test_one_child_runs_one_handler_after_the_other_in_its_main_thread(
    sqlite_app: Tenure, start: Start, path: Path
) -> None:
    app = sqlite_app
    pid = app.task(slots="process")(process_tasks.pid)
    where = app.task(slots="process")(process_tasks.in_main_thread)
    start(app, slots=1)

    first = app.enqueue(pid, payload(path)).result(PATIENCE)
    second = app.enqueue(pid, payload(path)).result(PATIENCE)

    assert first == second != os.getpid()
    assert app.enqueue(where).result(PATIENCE) is True


def test_every_task_of_a_queue_can_be_given_to_processes(
    sqlite_app: Tenure, start: Start, path: Path
) -> None:
    app = sqlite_app
    pid = app.task(process_tasks.pid)
    start(app, queues={"default": 1, "cpu": 1}, processes=["cpu"])

    assert app.enqueue(pid, payload(path)).result(PATIENCE) == os.getpid()
    assert app.enqueue(pid, payload(path), queue="cpu").result(PATIENCE) != os.getpid()


def test_progress_and_seal_go_through_the_parent(app: Tenure, start: Start) -> None:
    talks = app.task(slots="process")(process_tasks.talks)
    start()

    handle = app.enqueue(talks)

    assert handle.result(PATIENCE) == {"result": "sealed"}
    record = app.job(handle.job_id)
    assert record is not None
    assert record.progress == {"done": 1}


def test_a_child_that_is_killed_after_its_seal_has_completed_its_job(
    app: Tenure, start: Start
) -> None:
    task = app.task(slots="process")(process_tasks.sealed_then_killed)
    start()

    assert app.enqueue(task).result(PATIENCE) == "sealed"


def test_a_killed_child_is_a_failed_attempt_that_names_the_signal(
    app: Tenure, start: Start
) -> None:
    task = app.task(slots="process", retry_base=NONE)(process_tasks.once_killed)
    start(slots=1)

    handle = app.enqueue(task)

    assert handle.result(PATIENCE) == [2, "worker process killed: SIGKILL"]
    [attempt] = app.store.records().attempts(handle.job_id)
    assert (attempt.verb, attempt.outcome) == ("fail", "failed")
    assert (attempt.error_type, attempt.message) == ("worker process killed", "SIGKILL")


def test_poison_in_a_child_is_started_as_often_as_it_may_be_and_the_runner_lives_on(
    app: Tenure, start: Start, path: Path
) -> None:
    """O12."""
    poison = app.task(slots="process", max_attempts=3, retry_base=NONE)(process_tasks.poison)

    @app.task(max_attempts=1)
    def neighbour(job: Job) -> str:
        return "fine"

    neighbours = [app.enqueue(neighbour) for _ in range(5)]
    poisonous = app.enqueue(poison, payload(path))
    neighbours += [app.enqueue(neighbour) for _ in range(5)]
    start(slots=2)

    ends(app, poisonous.job_id, JobStatus.FAILED)

    assert notes(path) == ["1", "2", "3"]
    assert [handle.result(PATIENCE) for handle in neighbours] == ["fine"] * 10


@pytest.mark.parametrize(
    ("task", "given", "error"),
    [
        (process_tasks.leaves, None, "worker process exited: exit code 3"),
        (process_tasks.raises, "SystemExit", "SystemExit: 3"),
        (process_tasks.raises, "KeyboardInterrupt", "KeyboardInterrupt"),
        (process_tasks.raises, "GeneratorExit", "GeneratorExit"),
        (process_tasks.raises, "CancelledError", "CancelledError"),
        (process_tasks.raises, "MemoryError", "MemoryError"),
        (process_tasks.raises, "LookupError", "LookupError: not there"),
        (process_tasks.odd_result, None, "result not storable: result.at: object is not JSON"),
    ],
)
def test_whatever_a_handler_does_in_a_child_ends_its_own_job_and_no_more(
    sqlite_app: Tenure, start: Start, path: Path, task: Any, given: Any, error: str
) -> None:
    """O35."""
    app = sqlite_app
    ending = app.task(slots="process", max_attempts=1)(task)
    pid = app.task(slots="process")(process_tasks.pid)
    start(app, slots=1)

    job_id = app.enqueue(ending, given).job_id
    ends(app, job_id, JobStatus.FAILED)

    record = app.job(job_id)
    assert record is not None
    assert (record.last_error or "").startswith(error)
    assert app.enqueue(pid, payload(path)).result(PATIENCE)


def test_the_retry_policy_of_a_task_knows_the_exceptions_of_its_child(
    sqlite_app: Tenure, start: Start
) -> None:
    app = sqlite_app
    raises = app.task(slots="process", no_retry_on=LookupError)(process_tasks.raises)
    start(app)

    job_id = app.enqueue(raises, "LookupError").job_id
    ends(app, job_id, JobStatus.FAILED)

    record = app.job(job_id)
    assert record is not None
    assert record.attempt == 1


def test_a_call_that_keeps_a_childs_interpreter_for_two_leases_keeps_its_job(
    app: Tenure, start: Start, path: Path
) -> None:
    """O06 (d): the heartbeat is in another process."""
    lease = timedelta(seconds=0.6)
    task = app.task(slots="process")(process_tasks.holds_the_interpreter)
    start(lease_for=lease)
    start(queues=["another"], sweep_every=timedelta(milliseconds=100))

    handle = app.enqueue(task, payload(path, seconds=2 * lease.total_seconds()))

    assert handle.result(PATIENCE) == 1
    assert notes(path) == ["1"]


@pytest.mark.parametrize(
    ("task", "seen"),
    [
        (process_tasks.until_told, "CancelRequested"),
        (process_tasks.until_told_async, "CancelledError"),
    ],
)
def test_a_cancellation_reaches_the_child(
    app: Tenure, start: Start, path: Path, task: Any, seen: str
) -> None:
    until_told = app.task(slots="process")(task)
    start(lease_for=timedelta(seconds=1))
    job_id = app.enqueue(until_told, payload(path)).job_id
    eventually(lambda: notes(path) == ["started"], "the handler started")

    app.cancel(job_id)

    ends(app, job_id, JobStatus.CANCELLED)
    assert notes(path) == ["started", seen]


def test_a_lost_lease_reaches_the_child_and_nothing_is_written(
    app: Tenure, start: Start, path: Path
) -> None:
    until_told = app.task(slots="process")(process_tasks.until_told)
    runner = start(lease_for=timedelta(seconds=1))
    job_id = app.enqueue(until_told, payload(path), max_attempts=1).job_id
    eventually(lambda: notes(path) == ["started"], "the handler started")

    with closing(app.store.control_plane()) as plane:
        [held] = plane.held(runner.worker_id)
        plane.release(job_id, runner.worker_id, held.token, started=True)

    eventually(lambda: runner.running == 0, "the handler ended")
    assert notes(path) == ["started", "LeaseLost"]
    record = app.job(job_id)
    assert record is not None
    assert record.last_error == "given back on the last attempt"


def test_a_child_completes_its_job_with_its_own_rows(app: Tenure, start: Start) -> None:
    writes = app.task(slots="process")(process_tasks.writes)
    start()

    assert app.enqueue(writes).result(PATIENCE) == "receipt"


def test_what_a_child_logs_is_logged_by_the_parent(
    sqlite_app: Tenure, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    app = sqlite_app
    logs = app.task(slots="process")(process_tasks.logs)
    start(app)

    handle = app.enqueue(logs)
    handle.result(PATIENCE)

    [record] = [record for record in caplog.records if record.name == "app"]
    assert record.getMessage() == f"a word of job {handle.job_id}"
    assert record.__dict__["job_id"] == handle.job_id


def test_a_child_beyond_the_grace_is_killed_and_its_job_handed_back(
    app: Tenure, start: Start, path: Path
) -> None:
    sleeps = app.task(slots="process")(process_tasks.sleeps)
    runner = start()
    job_id = app.enqueue(sleeps, payload(path)).job_id
    eventually(lambda: notes(path), "the handler started")

    runner.stop(NONE)

    record = app.job(job_id)
    assert record is not None
    assert (record.status, record.attempt) == ("queued", 1)
    eventually(lambda: has_ended(int(notes(path)[0])), "the child ended")


def test_a_stop_ends_children_that_have_nothing_to_do(
    sqlite_app: Tenure, start: Start, path: Path
) -> None:
    app = sqlite_app
    pid = app.task(slots="process")(process_tasks.pid)
    runner = start(app)
    child = app.enqueue(pid, payload(path)).result(PATIENCE)

    runner.stop()

    assert has_ended(child)


def test_a_handler_that_a_child_cannot_find_is_refused(sqlite_app: Tenure) -> None:
    def inner(job: Job) -> None: ...

    sqlite_app.task(slots="process")(inner)

    with pytest.raises(InvalidArgument, match="cannot find the handler of 'inner'"):
        sqlite_app.worker()


def test_a_handler_of_a_queue_for_processes_that_a_child_cannot_find_is_refused(
    sqlite_app: Tenure,
) -> None:
    def inner(job: Job) -> None: ...

    sqlite_app.task(inner)
    sqlite_app.worker()

    with pytest.raises(InvalidArgument, match="cannot find the handler of 'inner'"):
        sqlite_app.worker(processes=["default"])
    with pytest.raises(InvalidArgument, match="no queue of this runner"):
        sqlite_app.worker(processes=["elsewhere"])


@contextmanager
def program(*command: str, target: str) -> Iterator[subprocess.Popen[str]]:
    """A worker process in a group of its own, as a shell or a service manager starts it."""
    process = subprocess.Popen(
        [sys.executable, *command, target],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def child_of(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    word, child = process.stdout.readline().split()
    assert word == "started"
    return int(child)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_whole_group_lets_the_child_finish(
    sqlite_app: Tenure, tmp_path: Path, number: signal.Signals
) -> None:
    """The handler is in the program itself, which its children import without running it."""
    app = sqlite_app
    handle = app.enqueue("until_let_go", str(tmp_path / "go"))
    with program("-m", "tests.runner.process_program", target=str(tmp_path / "jobs.db")) as process:
        child = child_of(process)

        os.kill(child, number)  # as a service manager does, which signals every process it finds
        os.killpg(process.pid, number)
        (tmp_path / "go").touch()

        assert handle.result(PATIENCE) == "ended"
        assert process.wait(PATIENCE) == 0
    assert has_ended(child)


def test_a_child_does_not_survive_its_parent(sqlite_app: Tenure, tmp_path: Path) -> None:
    sqlite_app.enqueue("until_let_go", str(tmp_path / "never"))
    with program("-m", "tests.runner.process_program", target=str(tmp_path / "jobs.db")) as process:
        child = child_of(process)

        process.kill()

        eventually(lambda: has_ended(child), "the child ended")


def test_a_child_ends_with_its_lifeline_where_the_system_tells_it_nothing() -> None:
    """As on systems other than Linux: the end of a pipe that only the parent has."""
    ear, lifeline = os.pipe()
    code = (
        "from types import SimpleNamespace; from tenure import process_main as child\n"
        f"child.sys = SimpleNamespace(platform='other'); child._die_with({os.getpid()}, {ear})\n"
        "print('waits', flush=True); import time; time.sleep(3600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], pass_fds=[ear], stdout=subprocess.PIPE, text=True
    ) as process:
        os.close(ear)
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "waits\n"
            assert process.poll() is None

            os.close(lifeline)

            assert process.wait(PATIENCE) == 1
        finally:
            process.kill()


def test_a_script_that_would_start_children_in_its_children_is_told_so(
    sqlite_app: Tenure, tmp_path: Path
) -> None:
    text = (ROOT / "tests/runner/process_program.py").read_text()
    script = tmp_path / "script.py"
    script.write_text(text.replace('if __name__ == "__main__":', "if True:"))
    handle = sqlite_app.enqueue("until_let_go", str(tmp_path / "go"))
    with program(str(script), target=str(tmp_path / "jobs.db")) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "has no process to run in" in line)

    assert 'make it under: if __name__ == "__main__":' in line
    assert status_of(sqlite_app, handle.job_id) is not JobStatus.FAILED


def test_a_runner_without_such_tasks_starts_no_child(
    sqlite_app: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    app = sqlite_app

    @app.task
    def plain(job: Job) -> str:
        return "fine"

    handle = app.enqueue(plain)
    WorkerRunner(app.store, app.tasks).run_until_idle()

    assert handle.result(PATIENCE) == "fine"
