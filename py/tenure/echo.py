"""Whether notifications of other sessions reach a connection while it is idle."""

from __future__ import annotations

import secrets
import selectors
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg

WITHIN = 2.0
"""Seconds in which an idle connection must hear another one."""


def hears_other_sessions(
    listening: psycopg.Connection[Any],
    connect: Callable[[], psycopg.Connection[Any]],
    channel: str,
) -> bool:
    """Whether what others notify on `channel` comes in, for a connection that listens on it.

    Without a pooler in between that is known beforehand. With one it is tried: a pooler that
    pools sessions lets it through; one that pools transactions has no server for an idle client,
    although the server that it lends at the next statement may well listen.
    """
    row = listening.execute("select pg_catalog.pg_backend_pid()").fetchone()
    if row is not None and row[0] == listening.info.backend_pid:
        return True
    word = f"p{secrets.token_hex(8)}"
    with closing(connect()) as other:
        other.execute("select pg_catalog.pg_notify(%s, %s)", (channel, word))
    return _hears(listening, word.encode())


def _hears(listening: psycopg.Connection[Any], word: bytes) -> bool:
    end = time.monotonic() + WITHIN
    with selectors.DefaultSelector() as selector:
        selector.register(listening.fileno(), selectors.EVENT_READ)
        while (left := end - time.monotonic()) > 0:
            selector.select(left)
            listening.pgconn.consume_input()
            while (notify := listening.pgconn.notifies()) is not None:
                if notify.extra == word:
                    return True
    return False
