"""A wire to the server of the test run that is cut when a COMMIT passes through it."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from psycopg.conninfo import conninfo_to_dict, make_conninfo

COMMIT = b"COMMIT\0"
READY = b"Z\0\0\0\x05"
"""How the server says that it has done what it was asked."""


class Cut(Enum):
    """What the server and the client still get of a COMMIT."""

    BEFORE_THE_REQUEST = "the server never hears of it"
    AFTER_THE_REQUEST = "the server hears of it, and nobody waits for its answer"
    BEFORE_THE_REPLY = "the server has done it, and the client never hears of that"


class Wire:
    """Forwards connections until one of them sends a COMMIT while it is armed."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self._armed: Cut | None = None
        self._lock = threading.Lock()
        self.turned_away = 0
        """Connections that were refused while the server was to be away."""
        self.away = 0
        """How many connections are still to be refused."""
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, cut: Cut, *, away: int = 0) -> None:
        """Cut at the next COMMIT, and then refuse so many new connections."""
        with self._lock:
            self._armed, self._away_after = cut, away

    def close(self) -> None:
        self._door.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            if self.away > 0:
                self.away -= 1
                self.turned_away += 1
                client.close()
                continue
            server = self._connect()
            threading.Thread(target=self._forward, args=(client, server), daemon=True).start()

    def _connect(self) -> socket.socket:
        host, port = self._server
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, selectors.DefaultSelector() as selector, contextlib.suppress(OSError):
            selector.register(client, selectors.EVENT_READ)
            selector.register(server, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    data = key.fileobj.recv(65536)  # type: ignore[union-attr]
                    if not data:
                        return
                    if key.fileobj is server:
                        client.sendall(data)
                    elif COMMIT in data and (cut := self._disarmed()) is not None:
                        if cut is not Cut.BEFORE_THE_REQUEST:
                            server.sendall(data)
                        if cut is Cut.BEFORE_THE_REPLY:
                            reply = b""
                            while READY not in reply:
                                reply += server.recv(65536)
                        return
                    else:
                        server.sendall(data)

    def _disarmed(self) -> Cut | None:
        with self._lock:
            cut, self._armed = self._armed, None
            if cut is not None:
                self.away = self._away_after
            return cut


@contextmanager
def wire(dsn: str) -> Iterator[tuple[Wire, str]]:
    """A wire to the database of a DSN, and the DSN that leads through it."""
    given = conninfo_to_dict(dsn)
    made = Wire(str(given.get("host") or "127.0.0.1"), int(given.get("port") or 5432))
    try:
        yield made, make_conninfo(dsn, host="127.0.0.1", port=made.port, sslmode="disable")
    finally:
        made.close()
