"""A lease's standing in memory that a parent process shares with a child."""

from __future__ import annotations

import mmap
import struct
import threading
from datetime import timedelta

from tenure.standing import Standing
from tenure.values import JobLease

SIZE = 512
_INSTANT = struct.Struct("@d")
_GOOD_UNTIL, _CANCELLED, _LOST, _WHY = 0, 8, 9, 10
_MOST_WHY = SIZE - _WHY - 1


class Mirror:
    """What a child may believe of its lease, written by the parent and read without a call.

    So a child that asks now and then whether to go on waits for nobody, and a parent that tells
    a child which holds its interpreter's lock does not wait either. The monotonic clock is the
    same for all processes of a machine, so a child also notices that its parent was stopped.
    """

    def __init__(self, fd: int) -> None:
        """`fd` is a file of `SIZE` bytes."""
        self._memory = mmap.mmap(fd, SIZE)
        self._lock = threading.Lock()
        self._shown: Standing | None = None

    def begin(self, standing: Standing | None) -> None:
        """Show this lease from now on, and no other; None: none."""
        with self._lock:
            self._shown = standing
            self._memory[_CANCELLED:] = bytes(SIZE - _CANCELLED)
        if standing is not None:
            self.show(standing)

    def show(self, standing: Standing) -> None:
        """What is known of it now, if it is the lease that is shown."""
        why = standing.lost
        with self._lock:
            if self._shown is not standing:
                return
            _INSTANT.pack_into(self._memory, _GOOD_UNTIL, standing.good_until)
            self._memory[_CANCELLED] = standing.cancel_requested
            if why is not None:
                text = why.encode(errors="replace")[:_MOST_WHY]
                self._memory[_WHY : _WHY + len(text)] = text
                self._memory[_LOST] = 1  # last: whoever sees it finds the reason whole

    @property
    def good_until(self) -> float:
        instant: float = _INSTANT.unpack_from(self._memory, _GOOD_UNTIL)[0]
        return instant

    @property
    def cancel_requested(self) -> bool:
        return self._memory[_CANCELLED] != 0

    @property
    def lost(self) -> str | None:
        if not self._memory[_LOST]:
            return None
        return self._memory[_WHY:].rstrip(b"\0").decode(errors="replace")


class MirroredStanding(Standing):
    """A lease in the child that works on it; the parent renews it."""

    def __init__(
        self, lease: JobLease, *, granted: float, lease_for: timedelta, mirror: Mirror
    ) -> None:
        super().__init__(lease, sent=granted, lease_for=lease_for)
        self._mirror = mirror

    @property
    def good_until(self) -> float:
        return self._mirror.good_until

    @property
    def cancel_requested(self) -> bool:
        return self._cancel_requested or self._mirror.cancel_requested

    @property
    def lost(self) -> str | None:
        if self._lost is None and (why := self._mirror.lost) is not None:
            self.lose(why)
        return super().lost
