"""A thread with a PostgreSQL connection of its own, on which notifications come."""

from __future__ import annotations

import contextlib
import logging
import queue
import selectors
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import closing
from typing import Any, TypeVar

import psycopg

from tenure.backoff import pauses
from tenure.echo import hears_other_sessions
from tenure.errors import ServerUnavailable
from tenure.postgres_signals import PostgresSignals

logger = logging.getLogger(__name__)

PROVE_EVERY = 15.0
"""Seconds between two proofs that the session still is the one that listens."""

T = TypeVar("T")


class Listener:
    """Listens, on a connection that no other thread touches.

    The thread always drains the connection, so that it can never be the session that holds up
    the server's notification queue. What others want to know on that connection they `ask`, and
    the thread asks it for them.

    When the connection is lost it is opened again, with growing, jittered pauses. `up` says
    whether there is one; `generation` counts them, because what a sleeper arranged on one is
    gone on the next. Behind a pooler that pools transactions there is never one: `pooled`.
    """

    def __init__(
        self,
        connect: Callable[[], psycopg.Connection[Any]],
        *,
        schema: str,
        heard: Callable[[str], None],
        changed: Callable[[], None],
        prove_every: float = PROVE_EVERY,
    ) -> None:
        """`heard` is given each payload, `changed` is called after `up` changed, both on the
        listener's thread; they must not wait."""
        self._connect = connect
        self._schema = schema
        self._heard = heard
        self._changed = changed
        self._prove_every = prove_every
        self._asked: queue.SimpleQueue[_Question] = queue.SimpleQueue()
        self._ear, self._bell = socket.socketpair()
        self._ear.setblocking(False)
        self._bell.setblocking(False)
        self._closing = threading.Event()
        self._pid: int | None = None
        self.generation = 0
        self.pooled = False
        self._thread = threading.Thread(target=self._run, name="tenure-listener", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, seconds: float = 5.0) -> None:
        """Stop listening; waits a little for a statement that is under way."""
        self._closing.set()
        self._ring()
        if self._thread.is_alive():
            self._thread.join(seconds)

    @property
    def up(self) -> bool:
        """Whether notifications come in just now."""
        return self._pid is not None

    @property
    def backend_pid(self) -> int | None:
        """The server process that listens."""
        return self._pid

    def ask(self, use: Callable[[PostgresSignals], T], *, seconds: float = 3.0) -> T:
        """What `use` returns, run on the listener's connection by the listener's thread.

        Raises what it raises, and `ServerUnavailable` when there is no connection or no answer
        in time.
        """
        if not self.up:
            raise ServerUnavailable("the listener has no connection")
        question = _Question(use)
        self._asked.put(question)
        self._ring()
        try:
            answer: T = question.answer.result(seconds)
        except (FutureTimeout, CancelledError):
            question.answer.cancel()
            raise ServerUnavailable("the listener does not answer") from None
        return answer

    def _ring(self) -> None:
        with contextlib.suppress(OSError):  # it rings already, or the thread has ended
            self._bell.send(b"!")

    def _run(self) -> None:
        with self._ear, self._bell:
            self._listen()

    def _listen(self) -> None:
        waits = pauses(0.1, 30.0)
        while not self._closing.is_set():
            began = time.monotonic()
            try:
                with closing(self._connect()) as connection:
                    signals = PostgresSignals(connection, schema=self._schema)
                    channel = signals.channel()
                    if not self._listens(connection, signals, channel):
                        return
                    self._serve(connection, signals, channel)
            except Exception as error:
                logger.warning("the listener has no connection: %s", error)
            finally:
                self._down()
            if time.monotonic() - began > self._prove_every:
                waits = pauses(0.1, 30.0)
            self._closing.wait(next(waits))

    def _listens(
        self, connection: psycopg.Connection[Any], signals: PostgresSignals, channel: str
    ) -> bool:
        """LISTEN, once for this connection; False behind a pooler that forgets it."""
        connection.add_notify_handler(lambda notify: self._heard(notify.payload))
        if signals.listen() and hears_other_sessions(connection, self._connect, channel):
            self._pid = _backend_pid(connection)
            self.generation += 1
            self._changed()
            return True
        self.pooled = True
        logger.warning(
            "the server is reached through a pooler that pools transactions, where notifications "
            "do not come: polling every second instead"
        )
        return False

    def _serve(
        self, connection: psycopg.Connection[Any], signals: PostgresSignals, channel: str
    ) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(self._ear, selectors.EVENT_READ)
            prove_at = time.monotonic() + self._prove_every
            while not self._closing.is_set():
                self._drain(connection)
                if time.monotonic() >= prove_at:
                    self._prove(connection, channel)
                    prove_at = time.monotonic() + self._prove_every
                    continue
                selector.select(prove_at - time.monotonic())
                self._answer(signals)

    def _drain(self, connection: psycopg.Connection[Any]) -> None:
        """Hand on what has come, also what came along with the answer to a statement."""
        connection.pgconn.consume_input()
        while (notify := connection.pgconn.notifies()) is not None:
            self._heard(notify.extra.decode("utf-8", "replace"))

    def _answer(self, signals: PostgresSignals) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._ear.recv(4096):
                pass
        while True:
            try:
                question = self._asked.get_nowait()
            except queue.Empty:
                return
            question.put(signals)

    def _prove(self, connection: psycopg.Connection[Any], channel: str) -> None:
        row = connection.execute(
            "select pg_catalog.pg_backend_pid(),"
            " exists (select from pg_catalog.pg_listening_channels() as c where c = %s)",
            (channel,),
        ).fetchone()
        if row != (self._pid, True):
            raise ServerUnavailable("the session that listened is gone")

    def _down(self) -> None:
        was_up, self._pid = self.up, None
        while True:
            try:
                self._asked.get_nowait().answer.cancel()
            except queue.Empty:
                break
        if was_up:
            self._changed()


class _Question:
    """A call to be made on the listener's thread, and its answer."""

    def __init__(self, use: Callable[[PostgresSignals], Any]) -> None:
        self._use = use
        self.answer: Future[Any] = Future()

    def put(self, signals: PostgresSignals) -> None:
        if not self.answer.set_running_or_notify_cancel():
            return
        try:
            self.answer.set_result(self._use(signals))
        except Exception as error:
            self.answer.set_exception(error)


def _backend_pid(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute("select pg_catalog.pg_backend_pid()").fetchone()
    assert row is not None
    return int(row[0])
