"""What a forked child must not take over from its parent."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """Something with locks, threads or connections that belong to one process."""

    def after_fork(self) -> None:
        """Begin anew, in the child: a lock may be held by a thread that does not exist there,
        and a connection is still the parent's."""
        ...


_known: WeakSet[Forked] = WeakSet()


def begin_anew_after_fork(thing: Forked) -> None:
    """Have its `after_fork` called in every child, for as long as it lives."""
    _known.add(thing)


def _after_fork() -> None:
    for thing in list(_known):
        thing.after_fork()


os.register_at_fork(after_in_child=_after_fork)
