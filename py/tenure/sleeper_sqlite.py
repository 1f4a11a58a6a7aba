"""Watches a SQLite file for commits, so that an idle runner claims soon after one."""

from __future__ import annotations

import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

from tenure.sleeper import Bell, Claim, Found, Queues, seconds_until_due
from tenure.sqlite_pace import Pace

_bells: defaultdict[Path, weakref.WeakSet[Bell]] = defaultdict(weakref.WeakSet)
_bells_lock = threading.Lock()


def wake_sleepers(path: Path) -> None:
    """Wake the sleepers of this process at once; those of others see the commit by themselves."""
    with _bells_lock:
        bells = list(_bells.get(path.resolve(), ()))
    for bell in bells:
        bell.ring()


class SqliteSleeper:
    """Looks at `PRAGMA data_version`, every ms at first and ten times a second in the end.

    The number moves on any commit by another connection. What it may mean is then read with
    `next_due`, which takes no lock; a claim would take the file's write lock.
    """

    def __init__(
        self,
        path: Path,
        *,
        data_version: Callable[[], int],
        next_due: Callable[[Sequence[str]], timedelta | None],
        poll_floor: timedelta,
        closed: Callable[[], None] = lambda: None,
    ) -> None:
        """`closed` is called by `close`, when nobody sleeps any more."""
        self._data_version = data_version
        self._next_due = next_due
        self._poll_floor = poll_floor.total_seconds()
        self._closed = closed
        self._bell = Bell()
        with _bells_lock:
            _bells[path.resolve()].add(self._bell)

    def sleep(self, claim: Claim, queues: Queues) -> None:
        skipped = 0
        while True:
            # Read before the claim: a commit that the claim does not see moves it afterwards.
            version = self._data_version()
            found = claim()
            if found is Found.FULL:
                return
            if found is Found.SOME:
                skipped = 0
                continue
            due_in = seconds_until_due(queues, self._next_due)
            if due_in > 0:
                skipped = 0
                self._wait(version, due_in, queues)
            else:
                # Due and not to be had: a solo job, perhaps, beside another one.
                skipped += 1
                self._bell.wait(min(1.0, 0.01 * 2 ** min(skipped, 7)))

    def _wait(self, version: int, due_in: float, queues: Queues) -> None:
        """Wait until a job is due, somebody rings, or the poll floor is reached."""
        end = time.monotonic() + self._poll_floor
        due_at = time.monotonic() + due_in
        pace = Pace()
        while (left := min(end, due_at) - time.monotonic()) > 0:
            if self._bell.wait(min(pace.pause(), left)):
                return
            seen = self._data_version()
            if seen != version:
                version = seen
                due_at = time.monotonic() + seconds_until_due(queues, self._next_due)

    def wake(self) -> None:
        self._bell.ring()

    @property
    def listening(self) -> bool:
        return True

    def close(self) -> None:
        self._closed()
