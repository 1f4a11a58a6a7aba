"""What a runner tells systemd, over a socket that the test listens to."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tenure import Tenure
from tenure.supervisor import Supervisor
from tests.runner.conftest import Start
from tests.runner.waiting import PATIENCE, eventually

WORKER = """
import tenure
app = tenure.Tenure("jobs.db")
app.install()
app.worker().run_forever()
"""


@pytest.fixture
def manager() -> Iterator[socket.socket]:
    """systemd's end; its address is short enough for a socket."""
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(f"{folder}/notify")
        s.settimeout(PATIENCE)
        yield s


def heard(manager: socket.socket) -> str:
    return manager.recv(100).decode()


def test_a_worker_process_says_that_it_is_ready_alive_and_stopping(
    manager: socket.socket, tmp_path: Path
) -> None:
    environment = {
        **os.environ,
        "NOTIFY_SOCKET": manager.getsockname(),
        "WATCHDOG_USEC": "200000",
    }
    with subprocess.Popen([sys.executable, "-c", WORKER], cwd=tmp_path, env=environment) as worker:
        try:
            assert [heard(manager) for _ in range(3)] == ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]
            worker.send_signal(signal.SIGTERM)
            said = heard(manager)
            while said == "WATCHDOG=1":
                said = heard(manager)
            assert said == "STOPPING=1"
            assert worker.wait(PATIENCE) == 0
        finally:
            worker.kill()


def test_a_process_that_hangs_gives_no_sign_of_life(manager: socket.socket) -> None:
    alive = True
    asked = 0

    def is_alive() -> bool:
        nonlocal asked
        asked += 1
        return alive

    environment = {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "20000"}
    with Supervisor(is_alive, environment=environment):
        assert [heard(manager) for _ in range(2)] == ["READY=1", "WATCHDOG=1"]
        alive = False
        seen = asked
        eventually(lambda: asked > seen + 1, "it was asked again")
        manager.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while manager.recv(100):
                pass
        seen = asked
        eventually(lambda: asked > seen + 3, "it was asked again and again")
        with pytest.raises(BlockingIOError):
            manager.recv(100)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"WATCHDOG_USEC": "20000"},
        {"NOTIFY_SOCKET": "/nowhere/at/all", "WATCHDOG_USEC": "20000"},
        {"NOTIFY_SOCKET": "@nobody listens here", "WATCHDOG_USEC": "soon"},
    ],
    ids=str,
)
def test_nobody_needs_to_listen(environment: dict[str, str]) -> None:
    with Supervisor(lambda: True, environment=environment) as supervisor:
        supervisor.stopping()


def test_an_abstract_address_is_understood() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        name = f"tenure-test-{os.getpid()}"
        manager.bind("\0" + name)
        manager.settimeout(PATIENCE)
        with Supervisor(lambda: True, environment={"NOTIFY_SOCKET": "@" + name}):
            assert heard(manager) == "READY=1"


def test_the_watchdog_of_another_process_is_not_fed(manager: socket.socket) -> None:
    environment = {
        "NOTIFY_SOCKET": manager.getsockname(),
        "WATCHDOG_USEC": "20000",
        "WATCHDOG_PID": str(os.getpid() + 1),
    }
    with Supervisor(lambda: True, environment=environment) as supervisor:
        assert supervisor._thread is None


def test_a_runner_is_alive_while_its_loop_comes_round(
    sqlite_app: Tenure, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not sqlite_app.worker().alive

    runner = start(sqlite_app)

    def alive() -> bool:
        return runner.alive

    assert alive()
    with monkeypatch.context() as patch:
        patch.setattr("tenure.runner.LONGEST_TURN", 0.0)
        assert not alive()
    runner.stop()
    assert alive()
