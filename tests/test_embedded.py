"""A server of one's own ends when it should, and keeps what it should."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from tenure import binaries, embedded
from tenure.errors import ServerUnavailable

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its end")


def count(server: embedded.Server) -> int:
    with psycopg.connect(server.url()) as connection:
        [(found,)] = connection.execute("select count(*) from t").fetchall()
        return int(found)


def test_what_was_committed_survives_a_crash_and_a_restart() -> None:
    with embedded.temporary(embedded.DURABLE) as server:
        with psycopg.connect(server.url()) as connection:
            connection.execute("create table t as select 1")

        server.crash()
        assert server.pid is None
        server.start()
        assert count(server) == 1

        server.restart()
        assert count(server) == 1


def test_a_closed_server_leaves_no_process_and_no_folder() -> None:
    with embedded.temporary() as server:
        pid = server.pid
        assert pid is not None

    assert not server.base.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_kept_folder_can_be_served_again() -> None:
    base = embedded.temporary().base
    try:
        with (
            embedded.Server(base, keep=True) as server,
            psycopg.connect(server.url()) as connection,
        ):
            connection.execute("create table t as select 1")
        with embedded.Server(base, keep=True) as server:
            assert count(server) == 1
    finally:
        shutil.rmtree(base)


@linux
def test_the_server_ends_with_a_killed_parent() -> None:
    program = (
        "import time; from tenure.embedded import temporary; server = temporary().start(); "
        "print(server.base, server.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        base, pid = parent.stdout.readline().split()
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.communicate()
    try:
        wait_until_gone(int(pid))
    finally:
        shutil.rmtree(base)


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return
        if state == "Z":  # nobody but init could collect it
            return
        time.sleep(0.02)
    pytest.fail(f"process {pid} is still there")


def test_a_server_that_cannot_start_says_why_and_leaves_nothing() -> None:
    server = embedded.temporary({"shared_buffers": "nonsense"})

    with pytest.raises(ServerUnavailable, match='invalid value for parameter "shared_buffers"'):
        server.start()

    assert not server.base.exists()


def test_a_server_that_cannot_start_again_keeps_its_data() -> None:
    with embedded.temporary() as server:
        server.stop()
        server.settings = {"shared_buffers": "nonsense"}
        with pytest.raises(ServerUnavailable):
            server.start()
        assert (server.data / "PG_VERSION").exists()


def test_a_folder_without_binaries_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENURE_PG_BIN", str(tmp_path))

    with pytest.raises(ServerUnavailable, match=f"TENURE_PG_BIN={tmp_path} holds no postgres"):
        binaries.find_bindir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as somebody else")
def test_binaries_that_the_other_user_cannot_reach_are_copied(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir(mode=0o700)
    root = binaries.find_bindir().parent
    shutil.copytree(root, hidden / root.parent.name / root.name, symlinks=True)
    if (libraries := root.parent.parent / f"{root.parent.name}.libs").is_dir():
        shutil.copytree(libraries, hidden / libraries.name, symlinks=True)

    server = embedded.temporary()
    server.bindir = hidden / root.parent.name / root.name / "bin"
    with server:
        assert server.bindir.is_relative_to(server.base)

    assert hidden.stat().st_mode & 0o777 == 0o700
