"""A pgbouncer of one's own that pools transactions, in front of the server of the test run."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tenure.binaries import other_user
from tests.tools import databases

POOL_SIZE = 3
"""Fewer than the clients, so that one client's transactions run on several servers' sessions."""


def find_pgbouncer() -> str | None:
    return shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


@contextmanager
def pgbouncer(program: str, dbname: str) -> Iterator[str]:
    """A pooler in transaction mode for as long as the block lasts; gives a DSN through it."""
    folder = Path(tempfile.mkdtemp(prefix="pgbouncer-", dir="/tmp"))
    given = databases.parameters()
    user = given.get("user") or "postgres"
    password = f" password={given['password']}" if given.get("password") else ""
    config = folder / "pgbouncer.ini"
    config.write_text(
        f"""
[databases]
{dbname} = host={given.get("host") or "127.0.0.1"} port={given.get("port") or 5432} \
user={user}{password} dbname={dbname}
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = {POOL_SIZE}
max_client_conn = 100
"""
    )
    owner = other_user()
    if owner:
        for path in (folder, config):
            os.chown(path, owner["user"], owner["group"])
    process = subprocess.Popen(
        [program, str(config)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=(log := (folder / "log").open("wb")),
        **owner,
    )
    dsn = f"postgresql://{user}@/{dbname}?host={folder}&port=6432"
    try:
        _wait_until_it_answers(process, dsn, folder / "log")
        yield dsn
    finally:
        process.terminate()
        process.wait(10)
        log.close()
        shutil.rmtree(folder)


def _wait_until_it_answers(process: subprocess.Popen[bytes], dsn: str, log: Path) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            psycopg.connect(dsn, prepare_threshold=None).close()
            return
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"pgbouncer: {error}: {log.read_text()}") from error
        time.sleep(0.02)
