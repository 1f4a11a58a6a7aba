"""O44: the tests have a server as root and as anybody else, their own or one that is given."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tenure import embedded
from tests.tools import databases, servers

REPOSITORY = Path(__file__).resolve().parents[1]
SMALL = "tests/migrations/test_install.py::test_the_default_schema_is_tenure"


def pytest_on(dsn: str) -> tuple[int, int, str, str]:
    """The process id, exit code and output of a run of one small test on a server."""
    inherited = {name: value for name, value in os.environ.items() if "XDIST" not in name}
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", SMALL],
        cwd=REPOSITORY,
        env=inherited | {"TENURE_TEST_DSN": dsn},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, error = process.communicate(timeout=50)
    return process.pid, process.returncode, out, error


def test_a_server_that_is_given_is_used_and_left_as_it_was() -> None:
    given = os.environ["TENURE_TEST_DSN"]

    pid, code, out, _ = pytest_on(given)

    assert code == 0, out
    assert "1 passed" in out
    with psycopg.connect(given) as connection:
        left = connection.execute(
            "select d.datname from pg_database as d where d.datname like %s",
            (f"tenure_test_{pid}_%",),
        ).fetchall()
    assert left == []
    assert databases.new_name("x").startswith(f"tenure_test_{os.getpid()}")


def test_a_server_that_is_given_and_cannot_be_reached_is_one_line(tmp_path: Path) -> None:
    _, code, out, error = pytest_on(f"host={tmp_path} dbname=postgres")

    assert code == 4
    lines = (out + error).strip().splitlines()
    assert [line for line in lines if line.startswith("ERROR: TENURE_TEST_DSN: connection")]
    assert not any("Traceback" in line for line in lines)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="/proc tells whose a process is")
@pytest.mark.parametrize("temporary", [embedded.temporary, servers.temporary])
def test_the_server_is_never_roots_and_its_folder_is_closed(
    temporary: Callable[[], embedded.Server],
) -> None:
    with temporary() as server:
        owner = Path(f"/proc/{server.pid}").stat().st_uid

        assert owner != 0
        assert owner == server.base.stat().st_uid
        assert server.base.stat().st_mode & 0o077 == 0
        assert (os.geteuid() == 0) == (owner != os.geteuid())
