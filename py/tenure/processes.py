"""Child processes in which handlers run."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

from tenure.errors import TenureError
from tenure.job import Job
from tenure.process_child import ChildGone, ChildProcess
from tenure.process_wire import Answer, Call, Done, Load, Logged, Work, load_for
from tenure.slots import Ended
from tenure.standing import Standing
from tenure.tasks import Task
from tenure.threads import Threads
from tenure.transactions import Transactions
from tenure.values import Failure, Outcome
from tenure.worker import Worker, released_later

logger = logging.getLogger(__name__)

LOOKS_EVERY = 0.5
"""Seconds after which a child is looked at although it says nothing."""

LOST_NOTICE = 5.0
"""Seconds that a handler has to end by itself once its lease is lost."""


class Processes:
    """The place of handlers that burn the processor or may crash: a child process for each.

    Children are made when they are first needed and then kept, as many as ever ran at once. A
    child runs one handler at a time, in its main thread, and only the handler: the lease, the
    heartbeat and all that is written about the job stay in this process, so a child that stops
    answering, or that a C call keeps from switching threads, loses no lease. (`job.transaction`
    is the exception: it opens a connection of the child's own.)

    A child that dies ends the attempt as a failure, `worker process killed` with the signal or
    `worker process exited` with the code, and is replaced. When a timeout is nearly over,
    SIGTERM raises `TimedOut` in the handler, wherever it is; half-way from there to the end, the
    child is killed with what it started, and the attempt has failed as `TimedOut`. A child whose
    lease is lost is killed `LOST_NOTICE` seconds later. A cancellation is for `Job.check` to see.

    Children have a session of their own and pay no heed to SIGINT and SIGTERM, so that a signal
    to the whole group lets them finish; they do not survive their parent.
    """

    def __init__(
        self, worker: Worker, tasks: Sequence[Task], *, transactions: Transactions | None
    ) -> None:
        """Raises `InvalidArgument` when a child would not find a handler of these."""
        self._worker = worker
        self._load: Load | None = None
        if tasks:
            self._load = load_for(tasks, transactions)
        self._threads = Threads(self._execute)
        self._lock = threading.Lock()
        self._idle: list[ChildProcess] = []
        self._busy: set[ChildProcess] = set()
        self._closed = False

    def start(self, standing: Standing, ended: Ended) -> None:
        self._threads.start(standing, ended)

    def close(self) -> None:
        """Kill what still runs, and let the others end."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            busy = list(self._busy)
        for child in busy:
            child.kill()
        for child in idle:
            child.hang_up()
        for child in idle:
            child.wait()
        self._threads.close()

    def _execute(self, standing: Standing) -> Outcome | None:
        """Have a child run the handler; the part of a thread for each child that works."""
        try:
            child = self._taken()
        except (OSError, ChildGone) as error:
            return released_later(standing.lease, f"has no process to run in: {error}")
        outcome, fit = None, False
        try:
            if not standing.start():
                fit = True
                return None
            outcome, fit = _Attempt(self._worker, child, standing).run()
        finally:
            self._given_back(child, fit)
        return outcome

    def _taken(self) -> ChildProcess:
        assert self._load is not None
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.alive:
                    self._busy.add(child)
                    return child
                child.wait()
        child = ChildProcess(self._load)
        with self._lock:
            self._busy.add(child)
            closed = self._closed
        try:
            if closed:
                raise ChildGone("the worker has stopped")
            child.wait_loaded()
        except BaseException:
            self._given_back(child, fit=False)
            raise
        return child

    def _given_back(self, child: ChildProcess, fit: bool) -> None:
        with self._lock:
            self._busy.discard(child)
            if fit and not self._closed:
                self._idle.append(child)
                return
        child.hang_up()
        # Its end takes a moment that the outcome of its job may not have.
        threading.Thread(target=child.wait, name="tenure-reaper", daemon=True).start()


class _Attempt:
    """One run of a handler in a child, seen from the parent."""

    def __init__(self, worker: Worker, child: ChildProcess, standing: Standing) -> None:
        self._worker = worker
        self._child = child
        self._standing = standing
        self._job = worker.job(standing)
        self._kill_at = (standing.stop_at + standing.end) / 2
        self._lost_since: float | None = None
        self._interrupted = False
        self._killed = False

    def run(self) -> tuple[Outcome | None, bool]:
        """How the lease is to end, and whether the child may run another."""
        child, standing = self._child, self._standing
        child.mirror.begin(standing)
        standing.watch(lambda: child.mirror.show(standing))
        try:
            child.mirror.show(standing)
            child.send(Work(standing.lease, standing.granted, standing.lease_for))
            done = self._served()
        except ChildGone:
            return self._worker.after_failure(self._failure(), standing), False
        finally:
            standing.watch(None)
            child.mirror.begin(None)
        standing.ended = standing.ended or done.ended
        if done.lost is not None and not standing.ended:
            standing.lose(done.lost)
        # An interruption may yet be on its way to it, and another job must not meet that.
        return done.outcome, not self._interrupted

    def _served(self) -> Done:
        """Answer the child until it is done."""
        while True:
            message = self._child.receive(self._enforced())
            if isinstance(message, Done):
                return message
            if isinstance(message, Call):
                self._child.send(_called(self._job, message))
            elif isinstance(message, Logged):
                target = logging.getLogger(message.record.name)
                if target.isEnabledFor(message.record.levelno):
                    target.handle(message.record)

    def _enforced(self) -> float:
        """Interrupt or kill the handler when that is due; seconds until to look again."""
        now = time.monotonic()
        standing = self._standing
        if not self._interrupted and now >= standing.stop_at:
            self._interrupted = True
            self._child.interrupt()
        if self._lost_since is None and standing.lost is not None:
            self._lost_since = now
        kill_at = self._kill_at
        if self._lost_since is not None:
            kill_at = min(kill_at, self._lost_since + LOST_NOTICE)
        if not self._killed and now >= kill_at:
            self._killed = True
            self._child.kill()
        due = kill_at if self._interrupted else min(standing.stop_at, kill_at)
        return LOOKS_EVERY if self._killed else min(LOOKS_EVERY, max(0.0, due - now))

    def _failure(self) -> Failure:
        if self._killed:
            timeout = self._standing.lease.timeout
            return Failure(
                error_type="TimedOut", message=f"killed: its timeout, {timeout}, was over"
            )
        return self._child.how_it_ended()


def _called(job: Job, call: Call) -> Answer:
    method: Any = {"progress": job.progress, "seal": job.seal}[call.method]
    try:
        return Answer(method(call.value))
    except TenureError as error:
        return Answer(error=error)
    except Exception as error:
        return Answer(error=TenureError(f"{type(error).__name__}: {error}"))
