"""The program of a child process that runs handlers for a runner."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import logging.handlers
import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

from tenure.codec import JsonText
from tenure.errors import LeaseLost, TimedOut
from tenure.job import Job
from tenure.mirror import Mirror, MirroredStanding
from tenure.process_job import ChildWorker
from tenure.process_wire import Answer, Call, Done, Load, Loaded, Logged, Work, loading, tasks_of
from tenure.standing import Standing
from tenure.tasks import Tasks
from tenure.worker import Handler, is_async

SHIELDED_AGAIN = 0.01
"""Seconds after which an interruption that came amid a message comes again."""

_PR_SET_PDEATHSIG = 1


def main(connection_fd: int, mirror_fd: int, lifeline_fd: int, parent: int) -> None:
    """Load what the parent says, run what it sends, end when it hangs up."""
    for fd in (connection_fd, mirror_fd, lifeline_fd):
        os.set_inheritable(fd, False)
    _die_with(parent, lifeline_fd)
    # The signals that ask a worker to stop may reach its whole group; only the parent decides.
    # No SIG_IGN, which the processes of a handler would inherit.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: None)
    child = Child(Connection(connection_fd), Mirror(mirror_fd))
    signal.signal(signal.SIGTERM, child.interrupt)
    with contextlib.suppress(EOFError, ConnectionError):
        child.serve()


class Child:
    """The child's end of the connection. Only the main thread runs handlers."""

    def __init__(self, connection: Connection, mirror: Mirror) -> None:
        self._connection = connection
        self._mirror = mirror
        self._sending = threading.Lock()
        self._calling = threading.Lock()
        self._working: Standing | None = None
        self._in_handler = False
        self._shielded = 0

    def serve(self) -> None:
        load = self._connection.recv()
        worker = self._loaded(load)
        if worker is None:
            return
        while True:
            work: Work = self._connection.recv()
            standing = MirroredStanding(
                work.lease, granted=work.granted, lease_for=work.lease_for, mirror=self._mirror
            )
            self._working = standing
            outcome = worker.outcome(standing)
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            # Whoever still calls is answered first; whoever calls later is refused.
            with self._calling:
                self._working = None
                self.send(Done(outcome, standing.ended, standing.lost))

    def call(self, standing: Standing, method: str, value: JsonText | None) -> Any:
        """Have the parent call a method of the job, and return or raise what it does."""
        with self._shield(), self._calling:
            if self._working is not standing:
                raise LeaseLost(f"job {standing.lease.job_id} has ended")
            self.send(Call(method, value))
            answer: Answer = self._connection.recv()
        if answer.error is not None:
            raise answer.error
        return answer.value

    def send(self, message: object) -> None:
        with self._shield(), self._sending:
            self._connection.send(message)

    def guarded(self, handler: Handler) -> Handler:
        """The handler, where `interrupt` may raise. An `async def` is cancelled instead."""
        if is_async(handler):
            return handler

        def guarded(job: Job) -> Any:
            self._in_handler = True
            try:
                return handler(job)
            finally:
                self._in_handler = False

        return guarded

    def interrupt(self, *_: object) -> None:
        """SIGTERM, in the main thread: the parent sends it when the timeout is over."""
        standing = self._working
        if standing is None or not self._in_handler or not standing.timed_out:
            return
        if self._shielded:
            threading.Timer(SHIELDED_AGAIN, os.kill, (os.getpid(), signal.SIGTERM)).start()
            return
        self._in_handler = False
        why = standing.why_stop()
        raise why if isinstance(why, TimedOut) else TimedOut("the job's timeout is over")

    @contextlib.contextmanager
    def _shield(self) -> Iterator[None]:
        """Keep `interrupt` from leaving half a message behind."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._shielded += 1
        try:
            yield
        finally:
            self._shielded -= 1

    def _loaded(self, load: Load) -> ChildWorker | None:
        try:
            with loading():
                tasks, transactions = tasks_of(load)
        except BaseException as error:
            self.send(Loaded(f"{type(error).__name__}: {error}"))
            return None
        if not logging.root.handlers:
            logging.root.addHandler(_ToParent(self))
            logging.root.setLevel(load.log_level)
        known = Tasks()
        for task in tasks:
            known.add(task)
        self.send(Loaded())
        return ChildWorker(known, transactions, call=self.call, guarded=self.guarded)


class _ToParent(logging.handlers.QueueHandler):
    """Sends records to the parent, which logs them as its own."""

    def __init__(self, child: Child) -> None:
        super().__init__(queue.SimpleQueue())  # unused: `enqueue` is what puts a record there
        self._child = child

    def enqueue(self, record: logging.LogRecord) -> None:
        self._child.send(Logged(record))


def _die_with(parent: int, lifeline_fd: int) -> None:
    """End this process when the parent ends, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)

    def wait() -> None:
        os.read(lifeline_fd, 1)
        os._exit(1)

    threading.Thread(target=wait, name="tenure-lifeline", daemon=True).start()
