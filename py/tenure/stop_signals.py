"""SIGTERM and SIGINT as a request to stop, then as an order."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from types import FrameType
from typing import Any, Self

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """While entered, the first signal is a request, and a second ends the process at once.

    The exit code is then 128 + the signal's number: 143 for SIGTERM, 130 for SIGINT. Outside
    the main thread Python allows no handlers; then there is only `request`.
    """

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[signal.Signals, Any] = {}
        self._wakeup_before = -1
        self._bell: socket.socket | None = None

    def __enter__(self) -> Self:
        # A handler runs between any two instructions of the main thread, perhaps while that
        # holds a lock; writing to a socket is safe there.
        self._ear, self._bell = socket.socketpair()
        if threading.current_thread() is threading.main_thread():
            # The system may give a signal to any thread, which does not end the main one's wait,
            # so the interpreter itself writes to the socket, on whatever thread it is.
            self._bell.setblocking(False)
            self._wakeup_before = signal.set_wakeup_fd(
                self._bell.fileno(), warn_on_full_buffer=False
            )
            for number in SIGNALS:
                self._before[number] = signal.signal(number, self._received)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._before:
            signal.set_wakeup_fd(self._wakeup_before)
        if self._bell is not None:
            self._bell.close()
        self._ear.close()

    def request(self) -> None:
        """Ask as a first signal does. Any thread."""
        self.requested = True
        if self._bell is not None:
            with contextlib.suppress(OSError):  # closed: nobody waits any more
                self._bell.send(b"!", socket.MSG_DONTWAIT)

    def wait(self) -> None:
        """Wait until somebody asks."""
        while not self.requested:
            self._ear.recv(1)

    def _received(self, number: int, _: FrameType | None) -> None:
        if self.requested:
            os._exit(128 + number)
        self.request()
