"""Tells systemd that the process is ready, alive, or stopping."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Self


class Supervisor:
    """While entered, the service manager that started the process knows how it is.

    It is told so over the socket that it names in the environment (`Type=notify`); without one
    nothing happens. With `WatchdogSec` a sign of life is sent twice in that time, from a thread
    of its own and only while `alive()` says so: a process that hangs is restarted.
    """

    def __init__(
        self, alive: Callable[[], bool], *, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._alive = alive
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._every = _watchdog_seconds(environment) / 2
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._address:
            self._tell("READY=1")
            if self._every > 0:
                self._thread = threading.Thread(
                    target=self._watch, name="tenure-watchdog", daemon=True
                )
                self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join(1.0)

    def stopping(self) -> None:
        """What is left may take as long as the grace."""
        if self._address:
            self._tell("STOPPING=1")

    def _watch(self) -> None:
        while not self._done.wait(self._every):
            if self._alive():
                self._tell("WATCHDOG=1")

    def _tell(self, state: str) -> None:
        # A leading @ stands for the NUL of an abstract address.
        address = "\0" + self._address[1:] if self._address[0] == "@" else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.setblocking(False)
            s.sendto(state.encode(), address)


def _watchdog_seconds(environment: Mapping[str, str]) -> float:
    """How long the manager waits for a sign of life; 0: for ever."""
    meant_for = environment.get("WATCHDOG_PID", "")
    micros = environment.get("WATCHDOG_USEC", "")
    if not micros.isdecimal() or meant_for not in ("", str(os.getpid())):
        return 0.0
    return int(micros) / 1e6
