"""Waiting for the ends of jobs, any number of them, with one thread and one connection."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import NamedTuple, Protocol

from tenure.errors import Busy, ServerUnavailable
from tenure.forks import begin_anew_after_fork
from tenure.limits import MAX_LEASES, POLL_FLOOR
from tenure.link import BROKEN
from tenure.sleeper import Bell
from tenure.values import JobResult

logger = logging.getLogger(__name__)

IDLE = 30.0
"""Seconds without anybody who waits after which the thread and its connection are let go."""

WITHOUT_SERVER = 1.0
"""Seconds between two attempts to read while the database is away."""

_FLOOR = POLL_FLOOR.total_seconds()

End = Future[JobResult | None]
"""What came of one job in the end; None when it is unknown."""


class Look(NamedTuple):
    """What is to be read now, and when to ask again."""

    at_all: bool
    """Read every job that is waited for, not just those that something was heard of."""
    within: float
    """Seconds until the next look at the latest."""


class Watch(Protocol):
    """How a store tells that jobs end; for one thread."""

    def look(self, waited: Collection[int]) -> Look:
        """Arrange to be told about these jobs, before they are read."""
        ...

    def rest(self) -> None:
        """Nobody waits just now: let nobody be told."""
        ...

    def close(self) -> None: ...


class Waits:
    """Hands out futures of the ends of jobs.

    One thread arranges to be told, reads what it was told of, all jobs in one statement, and at
    the poll floor reads all that are waited for, whatever it was told. While the database cannot
    be read it tries again every second. Threads: any; a forked child begins anew.
    """

    def __init__(
        self,
        read: Callable[[Sequence[int]], list[JobResult]],
        open_watch: Callable[[Callable[[int], None], Callable[[], None]], Watch],
    ) -> None:
        """`open_watch` is given what to call with the id of a job that has ended, and what to
        call when it may have missed one."""
        self._read = read
        self._open_watch = open_watch
        self.after_fork()
        begin_anew_after_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._bell = Bell()
        self._waited: defaultdict[int, list[End]] = defaultdict(list)
        self._unread: set[int] = set()
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def waiting(self, job_id: int) -> Iterator[End]:
        """The end of a job; waited for until the block ends."""
        end: End = Future()
        with self._lock:
            self._waited[job_id].append(end)
            self._unread.add(job_id)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tenure-waits", daemon=True)
                self._thread.start()
        self._bell.ring()
        try:
            yield end
        finally:
            self._forget(job_id, end)

    def close(self, seconds: float = 5.0) -> None:
        """Whoever still waits gets `ServerUnavailable`. A later wait begins anew."""
        with self._lock:
            thread, self._thread = self._thread, None
            ends = [end for ends in self._waited.values() for end in ends]
            self._waited.clear()
        self._bell.ring()
        for end in ends:
            _give(end, error=ServerUnavailable("the app was closed while somebody waited"))
        if thread is not None:
            thread.join(seconds)

    def _forget(self, job_id: int, end: End) -> None:
        with self._lock:
            ends = self._waited.get(job_id, [])
            if end in ends:
                ends.remove(end)
            if not ends:
                self._waited.pop(job_id, None)
                self._bell.ring()

    def _told(self, job_id: int) -> None:
        with self._lock:
            if job_id not in self._waited:
                return
            self._unread.add(job_id)
        self._bell.ring()

    def _run(self) -> None:
        try:
            watch = self._open_watch(self._told, self._bell.ring)
        except Exception as error:
            with self._lock:
                self._thread = None
                waited = list(self._waited)
            self._fail(waited, error)
            return
        with contextlib.closing(watch):
            all_read_at = time.monotonic()
            while self._somebody_waits(watch):
                all_read_at = self._look(watch, all_read_at)

    def _look(self, watch: Watch, all_read_at: float) -> float:
        """Look once, and wait until the next time; when all were last read."""
        with self._lock:
            waited, unread = set(self._waited), self._unread & self._waited.keys()
            self._unread = set()
        try:
            look = watch.look(waited)
            now = time.monotonic()
            if look.at_all or now >= all_read_at + _FLOOR:
                unread, all_read_at = waited, now
            self._read_all(list(unread))
            pause = min(look.within, all_read_at + _FLOOR - time.monotonic())
        except (*BROKEN, Busy) as error:
            logger.info("the ends of %d jobs cannot be read: %s", len(waited), error)
            with self._lock:
                self._unread |= waited
            pause = WITHOUT_SERVER
        except Exception as error:
            self._fail(waited, error)
            pause = 0.0
        self._bell.wait(pause)
        return all_read_at

    def _somebody_waits(self, watch: Watch) -> bool:
        """Whether this thread is to go on; waits a while for somebody who waits."""
        me = threading.current_thread()
        if not self._waited and self._thread is me:
            with contextlib.suppress(*BROKEN):
                watch.rest()
            self._bell.wait(IDLE)
        with self._lock:
            if self._thread is me and not self._waited:
                self._thread = None
            return self._thread is me

    def _read_all(self, job_ids: list[int]) -> None:
        for first in range(0, len(job_ids), MAX_LEASES):
            some = job_ids[first : first + MAX_LEASES]
            found = {result.job_id: result for result in self._read(some)}
            for job_id in some:
                result = found.get(job_id)
                if result is None or result.has_ended:
                    self._end(job_id, result)

    def _end(self, job_id: int, result: JobResult | None) -> None:
        for end in self._taken(job_id):
            _give(end, result)

    def _fail(self, job_ids: Collection[int], error: Exception) -> None:
        for job_id in job_ids:
            for end in self._taken(job_id):
                _give(end, error=error)

    def _taken(self, job_id: int) -> list[End]:
        with self._lock:
            return self._waited.pop(job_id, [])


def _give(end: End, result: JobResult | None = None, *, error: Exception | None = None) -> None:
    with contextlib.suppress(InvalidStateError):  # whoever waited has given up
        if error is None:
            end.set_result(result)
        else:
            end.set_exception(error)
