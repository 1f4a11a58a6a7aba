"""A connection that is opened when it is first needed, then anew after it broke."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import psycopg

from tenure.errors import ServerUnavailable

BROKEN = (ServerUnavailable, psycopg.OperationalError, psycopg.InterfaceError)
"""After one of these the connection is given up; a needless new one costs milliseconds."""


class Closable(Protocol):
    def close(self) -> None: ...


P = TypeVar("P", bound=Closable)
T = TypeVar("T")


class Link(Generic[P]):
    """One connection's worth of a control plane, for one purpose.

    Calls from several threads take turns. A call whose connection breaks raises as the control
    plane does, so the caller decides whether to try again; the next call gets a new connection.
    """

    def __init__(
        self, open_plane: Callable[[], P], *, on_open: Callable[[P], None] | None = None
    ) -> None:
        self._open_plane = open_plane
        self._on_open = on_open
        self._plane: P | None = None
        self._lock = threading.Lock()

    def call(self, use: Callable[[P], T]) -> T:
        """What `use` returns, given the plane; `on_open` has seen each plane before `use` does."""
        with self._lock:
            try:
                if self._plane is None:
                    self._plane = self._open_plane()
                    if self._on_open is not None:
                        self._on_open(self._plane)
                return use(self._plane)
            except BROKEN:
                self._discard()
                raise

    def close(self, seconds: float = 1.0) -> None:
        """Close what is open, unless a call that is under way does not end. A later call opens
        anew."""
        if self._lock.acquire(timeout=seconds):
            try:
                self._discard()
            finally:
                self._lock.release()

    def _discard(self) -> None:
        plane, self._plane = self._plane, None
        if plane is not None:
            with contextlib.suppress(Exception):
                plane.close()
