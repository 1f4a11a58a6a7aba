"""A connection per thread, and none across a fork."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from tenure.errors import InvalidArgument, ServerUnavailable
from tenure.sqlite import SqliteControlPlane
from tenure.sqlite_file import SqliteFile, ThreadConnection
from tenure.sqlite_transaction import Transaction
from tenure.sqlite_values import host_clock


def connection_of(t: Transaction) -> sqlite3.Connection:
    return t._cursor.connection


@pytest.fixture
def file(control_plane: SqliteControlPlane) -> SqliteFile:
    assert isinstance(control_plane._database, SqliteFile)
    return control_plane._database


def test_each_thread_has_a_connection_of_its_own_and_keeps_it(file: SqliteFile) -> None:
    both = threading.Barrier(2)

    def seen() -> tuple[sqlite3.Connection, sqlite3.Connection]:
        both.wait(5)
        first = file.read(connection_of)
        both.wait(5)
        return first, file.read(connection_of)

    with ThreadPoolExecutor(2) as pool:
        (a, a_again), (b, b_again) = (f.result() for f in [pool.submit(seen) for _ in range(2)])

    assert a is a_again
    assert b is b_again
    assert a is not b


def test_every_new_connection_survives_a_loss_of_power_and_waits_for_locks(
    file: SqliteFile,
) -> None:
    def settings(t: Transaction) -> list[object]:
        names = ("journal_mode", "synchronous", "busy_timeout")
        return [t.all(f"pragma {name}")[0][0] for name in names]

    with ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(file.read, settings).result()

    assert file.read(settings) == elsewhere == ["wal", 2, 20]


def test_the_connection_of_a_thread_that_ended_is_closed(file: SqliteFile) -> None:
    thread = threading.Thread(target=lambda: file.read(lambda t: None))
    before = len(file._connections)

    thread.start()
    thread.join()

    assert len(file._connections) == before


def test_close_ends_the_connections_of_all_threads(path: Path) -> None:
    plane = SqliteControlPlane(path)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(plane.enqueue, "mail", "send").result()

        plane.close()

        with pytest.raises(ServerUnavailable, match="was closed"):
            pool.submit(plane.enqueue, "mail", "send").result()
    assert not path.with_name(path.name + "-wal").exists()  # the last to close clears it away


def test_close_waits_for_a_transaction_of_another_thread(file: SqliteFile) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def work(t: Transaction) -> int:
        inside.set()
        go_on.wait(5)
        return len(t.all("select 1"))

    with ThreadPoolExecutor(2) as pool:
        working = pool.submit(file.read, work)
        inside.wait(5)
        closing_ = pool.submit(file.close)
        assert not closing_.done()
        go_on.set()
        assert working.result() == 1
        closing_.result()


FORK = """
import os, sys
from tenure.sqlite import SqliteControlPlane

plane = SqliteControlPlane(sys.argv[1])
plane.enqueue("mail", "send")
child = os.fork()
if child == 0:
    [lease] = plane.claim(["mail"], "child")
    files = {os.stat(sys.argv[1] + suffix).st_ino for suffix in ("", "-shm")}
    with open("/proc/locks") as locks:
        owned = {int(l.split()[5].split(":")[2]) for l in locks if l.split()[4] == str(os.getpid())}
    os._exit(0 if lease.token == 1 and owned >= files else 1)
_, status = os.waitpid(child, 0)
assert plane.claim(["mail"], "parent") == []
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the locks are read from Linux")
def test_a_forked_child_works_under_locks_of_its_own(path: Path) -> None:
    """With an inherited connection open SQLite would think that the child has the parent's."""
    subprocess.run([sys.executable, "-c", FORK, str(path)], check=True, timeout=30)


def test_a_connection_of_another_process_is_never_used(file: SqliteFile) -> None:
    """For a fork that runs no hooks, such as one from C."""
    inherited = file.read(connection_of)
    assert isinstance(inherited, ThreadConnection)
    inherited.process = os.getpid() + 1

    fresh = file.read(connection_of)

    assert fresh is not inherited
    assert inherited.execute("select 1").fetchone() == (1,)
    inherited.process = os.getpid()


@pytest.mark.parametrize("path", ["", ":memory:"])
def test_what_is_no_file_is_refused(path: str) -> None:
    with pytest.raises(InvalidArgument, match="no file"):
        SqliteControlPlane(path)


def test_a_file_that_is_no_database_is_one_clear_error(path: Path) -> None:
    path.write_text("To whom it may concern\n" * 100)

    with pytest.raises(ServerUnavailable, match=r"jobs\.db is not a SQLite database"):
        SqliteControlPlane(path)


def test_a_file_that_cannot_be_opened_is_one_clear_error(path: Path) -> None:
    with pytest.raises(ServerUnavailable, match=r"nowhere/jobs\.db cannot be used"):
        SqliteControlPlane(path.parent / "nowhere" / "jobs.db")


def test_the_data_version_moves_with_a_commit_elsewhere_and_not_with_ones_own(
    control_plane: SqliteControlPlane, path: Path
) -> None:
    before = control_plane.data_version()

    control_plane.enqueue("mail", "send")
    assert control_plane.data_version() == before

    with closing(SqliteControlPlane(path, clock=host_clock)) as other:
        other.enqueue("mail", "send", delay=timedelta(hours=1))
    assert control_plane.data_version() != before
