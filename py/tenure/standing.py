"""One lease as this process may believe in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

from tenure.errors import CancelRequested, LeaseLost, TenureError, TimedOut
from tenure.values import Failure, JobLease, Outcome

Key = tuple[int, int]
"""(job_id, token): a job's id alone would mistake one lease of a job for the next."""

_ROUNDING = 0.001
"""A lease ends on a whole millisecond, so it may be this much shorter than asked."""

MOST_NOTICE = 2.0
"""Seconds before the end of a timeout at which the handler is told; at most a fifth of it."""


class Standing:
    """One lease as this process may believe in it.

    The database decides who owns a job. This is the local, pessimistic copy: the lease is good
    for `lease_for` from the moment the last accepted proof was *sent*, by a monotonic clock,
    and never beyond the job's timeout. Once lost it stays lost.

    Threads: any.
    """

    # Defaults stand on the class: one of these is made for every job, mostly to change nothing.
    sealed = False
    ended = False
    """The handler has ended the lease itself; nothing is left to be written."""
    doubt: Failure | None = None
    """Why the attempt must fail, whatever its handler returns: it may have lost writes."""
    outcome: Outcome | None = None
    """How the lease is to end, once the handler has."""
    end = float("inf")
    """The monotonic instant at which the job's timeout is over."""
    stop_at = float("inf")
    """From then on the handler is told so: the failure must be written before the end."""
    _changed: Callable[[], None] | None = None
    _started = False
    _withdrawn = False
    _cancel_requested = False
    _lost: str | None = None
    _told_lost: threading.Event | None = None

    def __init__(
        self,
        lease: JobLease,
        *,
        sent: float,
        lease_for: timedelta,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`sent`: the monotonic instant at which the claim was sent."""
        self.lease = lease
        self.key: Key = (lease.job_id, lease.token)
        self.granted = self._proved_at = sent
        self.lease_for = lease_for
        self._seconds = lease_for.total_seconds() - _ROUNDING
        self._good_until = sent + self._seconds
        self._monotonic = monotonic
        self._lock = threading.Lock()
        if lease.timeout is not None:
            timeout = lease.timeout.total_seconds()
            self.end = sent + timeout
            self.stop_at = self.end - min(MOST_NOTICE, timeout / 5)
            self._good_until = min(self._good_until, self.end - _ROUNDING)

    @property
    def proved_at(self) -> float:
        """The monotonic instant at which the last call was sent that showed the token good."""
        return self._proved_at

    @property
    def good_until(self) -> float:
        """The monotonic instant up to which nobody else can have been granted the job."""
        return self._good_until

    def proved(self, sent: float) -> None:
        """The database accepted the token in a call that was sent at this monotonic instant."""
        with self._lock:
            self._proved_at = max(self._proved_at, sent)
            self._good_until = min(self.end - _ROUNDING, self._proved_at + self._seconds)
        self._tell()

    def lose(self, why: str) -> None:
        """Believe in this lease no longer; the first reason given is kept."""
        with self._lock:
            self._lost = self._lost or why
            if self._told_lost is not None:
                self._told_lost.set()
        self._tell()

    @property
    def lost(self) -> str | None:
        """Why the lease must be taken for lost; None while it is good."""
        if self._lost is None and self._monotonic() >= self.good_until:
            timed_out = self._monotonic() >= self.end - _ROUNDING
            self.lose("the job's timeout is over" if timed_out else "it was not renewed in time")
        return self._lost

    def wait_lost(self, seconds: float) -> bool:
        """Wait, but not once the lease is lost; True when it is."""
        with self._lock:
            if self._told_lost is None:
                self._told_lost = threading.Event()
                if self._lost is not None:
                    self._told_lost.set()
        left = self.good_until - self._monotonic()
        self._told_lost.wait(max(0.0, min(seconds, left)))
        return self.lost is not None

    def request_cancel(self) -> None:
        """A cancellation of the job was accepted."""
        self._cancel_requested = True
        self._tell()

    @property
    def cancel_requested(self) -> bool:
        return self._cancel_requested

    @property
    def timed_out(self) -> bool:
        """Whether the handler is to stop because of the job's timeout."""
        return self._monotonic() >= self.stop_at

    def why_stop(self) -> TenureError | None:
        """What a handler is to be told that asks whether to go on; None: it may."""
        if self.ended:
            return None
        job_id = self.lease.job_id
        if (why := self.lost) is not None:
            return LeaseLost(f"the lease on job {job_id} is lost: {why}")
        if self.cancel_requested and not self.sealed:
            return CancelRequested(f"a cancellation of job {job_id} was accepted")
        if self.timed_out:
            return TimedOut(f"the timeout of job {job_id}, {self.lease.timeout}, is over")
        return None

    def watch(self, changed: Callable[[], None] | None) -> None:
        """Have `changed` called after every proof, loss and cancellation; None: no longer.

        On the thread that learns of it, perhaps once more than is asked for: it must not wait.
        The passing of time is no change.
        """
        self._changed = changed

    def _tell(self) -> None:
        if (changed := self._changed) is not None:
            changed()

    def start(self) -> bool:
        """Enter the handler; False when the lease was withdrawn or lost before."""
        with self._lock:
            self._started = self._lost is None and not self._withdrawn
            return self._started

    def withdraw(self) -> bool:
        """Keep the handler from being entered; False when it was entered already."""
        with self._lock:
            self._withdrawn = not self._started
            return self._withdrawn

    @property
    def started(self) -> bool:
        return self._started
