"""A PostgreSQL server of one's own on a private Unix socket, as root or not.

As root the server runs as 'postgres' or 'nobody', for PostgreSQL refuses to run as root. The
socket's folder is closed to other users, which is why the server asks nobody for a password.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import quote

from . import binaries
from .errors import InvalidArgument, ServerUnavailable

SMALL: Mapping[str, str] = {"shared_buffers": "32MB", "max_connections": "100"}

# A commit is reported before it is safe: for tests that do not crash the server.
FAST: Mapping[str, str] = {
    **SMALL,
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}

# What was reported committed survives a crash: PostgreSQL's own defaults, spelled out.
DURABLE: Mapping[str, str] = {
    **SMALL,
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
}

StopMode = Literal["fast", "immediate"]

_SIGNALS: Mapping[StopMode, signal.Signals] = {
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}
_LONGEST_SOCKET_PATH = 107  # bytes, of Linux; macOS has 103


def temporary(settings: Mapping[str, str] = FAST) -> Server:
    """A server that is not started yet, in a new folder that `close` removes.

    The folder lies directly in /tmp: a Unix socket's path must be short.
    """
    place = "/tmp" if Path("/tmp").is_dir() else None
    return Server(Path(tempfile.mkdtemp(prefix="tenure-", dir=place)), settings=settings)


@dataclass
class Server:
    """One data folder and the server that runs on it, if it runs.

    `start` and `stop` may alternate, with the data kept in between; `close` ends both, or with
    `keep` the server only. On Linux the server also ends, as by a crash, when the *thread* that
    started it ends; other systems leave it running.
    """

    base: Path
    bindir: Path = field(default_factory=binaries.find_bindir)
    settings: Mapping[str, str] = field(default_factory=lambda: FAST)
    keep: bool = False
    port: int = 5432
    user: str = "postgres"
    _process: subprocess.Popen[bytes] | None = None

    def url(self, dbname: str = "postgres") -> str:
        """The server's DSN as a URL, which psycopg and psql both take."""
        host = quote(str(self.base), safe="/")
        return f"postgresql://{self.user}@/{quote(dbname, safe='')}?host={host}&port={self.port}"

    @property
    def data(self) -> Path:
        return self.base / "data"

    @property
    def log(self) -> Path:
        return self.base / "log"

    @property
    def pid(self) -> int | None:
        """The postmaster's process id, or None when this object runs no server."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self) -> Self:
        """Make the data folder if it is new, start the server, and return once it is ready.

        After a crash this includes recovery. Raises ServerUnavailable, with the end of the
        server's log, when the server ends or takes more than 60 s; new data is then removed.
        """
        if self.pid is not None:
            return self
        new = not (self.data / "PG_VERSION").exists()
        try:
            owner = binaries.other_user()
            if owner:
                os.chown(self.base, owner["user"], owner["group"])
                if not binaries.reachable(self.bindir, owner):
                    self.bindir = binaries.copied(self.bindir, self.base / "pg")
            if new:
                self._initdb(owner)
            self._launch(owner)
            self._wait_until_ready()
        except BaseException:
            self.stop("immediate")
            if new:
                self.close()
            raise
        return self

    def stop(self, mode: StopMode = "fast") -> None:
        """End the server and keep its data.

        'fast' rolls back what is open and writes a checkpoint; 'immediate' ends every process
        at once, as a crash would, and leaves recovery to the next start.
        """
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(_SIGNALS[mode])
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGQUIT)
                self._process.wait(10)
        self._process = None

    def crash(self) -> None:
        """End every process of the server at once, with no checkpoint; the data stays."""
        self.stop("immediate")

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop in the given mode and start again on the same data, socket and port."""
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """Stop the server and remove its folder, unless `keep` is set."""
        self.stop()
        if not self.keep:
            shutil.rmtree(self.base, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _environment(self) -> dict[str, str]:
        # PGDATA, PGHOST and their like are meant for another server.
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
        return inherited | {"LC_ALL": "C", "TZ": "UTC"}

    def _initdb(self, owner: dict[str, Any]) -> None:
        # fmt: off
        made = subprocess.run(
            [self.bindir / "initdb", "-D", self.data, "-U", self.user, "-A", "trust",
             "-E", "UTF8", "--locale=C", "--no-sync", "--wal-segsize=1"],
            env=self._environment(), cwd=self.base, capture_output=True, text=True, check=False,
            **owner,
        )
        # fmt: on
        if made.returncode:
            raise ServerUnavailable(f"initdb failed: {made.stderr.strip()}")

    def _launch(self, owner: dict[str, Any]) -> None:
        socket = self.base / f".s.PGSQL.{self.port}"
        if len(os.fsencode(socket)) > _LONGEST_SOCKET_PATH:
            raise InvalidArgument(f"the path of the socket is too long: {socket}")
        command = [str(self.bindir / "postgres"), "-D", str(self.data)]
        command += ["-k", str(self.base), "-p", str(self.port)]
        settings = {"listen_addresses": "", "unix_socket_permissions": "0700", **self.settings}
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with self.log.open("ab") as log, warnings.catch_warnings():
            # Python warns of a fork among threads; the child makes one system call.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process = subprocess.Popen(
                command,
                env=self._environment(),
                cwd=self.base,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent(),
                start_new_session=True,
                **owner,
            )

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if (code := self._process.poll()) is not None:
                raise ServerUnavailable(f"postgres ended with {code}: {self._log_end()}")
            with contextlib.suppress(FileNotFoundError):
                # A crashed server may have left its own file, which says 'ready' too.
                lines = [*(self.data / "postmaster.pid").read_text().split("\n"), *[""] * 8]
                if lines[0] == str(self._process.pid) and lines[7].strip() == "ready":
                    return
            time.sleep(0.01)
        raise ServerUnavailable(f"postgres is not ready after 60 s: {self._log_end()}")

    def _log_end(self) -> str:
        return self.log.read_text(errors="replace")[-2000:].strip()


def _die_with_parent() -> Callable[[], object] | None:
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # looked up here: the child of a fork should do little
    return lambda: prctl(1, signal.SIGQUIT)  # PR_SET_PDEATHSIG
