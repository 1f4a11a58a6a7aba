"""One child process, as its parent sees it."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading

from tenure.mirror import SIZE, Mirror
from tenure.process_wire import Load, Loaded
from tenure.values import Failure

logger = logging.getLogger(__name__)

DIES_WITHIN = 2.0
"""Seconds that a child has to end after its parent hung up."""

_PROGRAM = """import sys; sys.path[:] = {path!r}
from tenure.process_main import main
main({connection}, {mirror}, {lifeline}, {parent})"""


class ChildGone(Exception):
    """The child has died, or does not make sense any more."""


class ChildProcess:
    """A child that has nothing of this process but what it is sent.

    `interrupt`, `kill` and `hang_up` may be called on any thread; the rest is for one.
    """

    def __init__(self, load: Load) -> None:
        """Starts it; `wait_loaded` tells when it is of use. Raises `OSError`."""
        self._connection, theirs = multiprocessing.Pipe()
        lifeline, self._lifeline = multiprocessing.Pipe(duplex=False)
        with theirs, lifeline, tempfile.TemporaryFile() as file:
            try:
                file.truncate(SIZE)
                self.mirror = Mirror(file.fileno())
                fds = (theirs.fileno(), file.fileno(), lifeline.fileno())
                program = _PROGRAM.format(
                    path=sys.path,
                    connection=fds[0],
                    mirror=fds[1],
                    lifeline=fds[2],
                    parent=os.getpid(),
                )
                # A session of its own: signals to the parent's group do not reach it, and what a
                # handler started can be killed with it.
                self._process = subprocess.Popen(
                    [sys.executable, "-c", program],
                    stdin=subprocess.DEVNULL,
                    pass_fds=fds,
                    start_new_session=True,
                )
            except BaseException:
                self._connection.close()
                self._lifeline.close()
                raise
        self._reaping = threading.Lock()
        self._hung_up = False
        with contextlib.suppress(ChildGone):  # `wait_loaded` meets it again
            self.send(load)

    def wait_loaded(self) -> None:
        """Wait until it has imported its handlers; raises `ChildGone` when it cannot."""
        message = None
        while message is None:
            message = self.receive(1.0)
        assert isinstance(message, Loaded)
        if message.error is not None:
            raise ChildGone(message.error)

    @property
    def alive(self) -> bool:
        with self._reaping:
            return self._process.poll() is None

    def send(self, message: object) -> None:
        """Raises `ChildGone`."""
        try:
            self._connection.send(message)
        except OSError as error:
            raise ChildGone(str(error)) from None

    def receive(self, seconds: float) -> object | None:
        """What it says within this time; None for nothing. Raises `ChildGone`."""
        try:
            if self._connection.poll(seconds):
                message: object = self._connection.recv()
                return message
        except (EOFError, OSError) as error:
            raise ChildGone(str(error)) from None
        except (pickle.UnpicklingError, AttributeError, ImportError, ValueError) as error:
            self.kill()
            raise ChildGone(f"it sent something that cannot be read: {error}") from None
        # Its end of the connection may live on in a process that it has forked.
        if not self.alive:
            raise ChildGone("it has died")
        return None

    def interrupt(self) -> None:
        self._signal(signal.SIGTERM, group=False)

    def kill(self) -> None:
        """Kill it, and what it has started in its session."""
        self._signal(signal.SIGKILL, group=True)

    def hang_up(self) -> None:
        """Have it end as soon as its handler has."""
        with self._reaping:
            if not self._hung_up:
                self._hung_up = True
                self._connection.close()

    def wait(self) -> int:
        """Its exit code, negative for a signal; killed when it does not end by itself."""
        try:
            code = self._process.wait(DIES_WITHIN)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        self._lifeline.close()
        return code

    def how_it_ended(self) -> Failure:
        """Waits for the end of a child that is gone."""
        code = self.wait()
        if code < 0:
            return Failure(error_type="worker process killed", message=_name(-code))
        return Failure(error_type="worker process exited", message=f"exit code {code}")

    def _signal(self, number: signal.Signals, *, group: bool) -> None:
        # Once it is reaped, its number may be another's.
        with self._reaping:
            if self._process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    (os.killpg if group else os.kill)(self._process.pid, number)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
