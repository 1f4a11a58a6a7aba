"""A database session that is sent plain SQL text, as psql would send it."""

from __future__ import annotations

import re
import selectors
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from tenure.verify.cells import DONE

_PLACE = re.compile(r"@(?P<object>\w+)|(?<![:\w]):(?P<value>[a-z]\w*)|(?<!:):\"(?P<name>\w+)\"")
_PLAIN = re.compile(r"tenure[a-z0-9_]*")

WITHIN = 5.0
"""Seconds after which a statement that must not wait is taken to wait."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a statement: the text of its first value, DONE, `nothing` or an SQLSTATE."""

    text: str
    row: Mapping[str, str | None] | None = None
    """The columns, when there was exactly one row."""
    detail: str = ""
    """The message of an error."""

    def __str__(self) -> str:
        return f"{self.text}: {self.detail}" if self.detail else self.text


def rendered(sql: str, schema: str, variables: Mapping[str, str | None]) -> str:
    """A statement with every place filled, ready for psql."""

    def fill(place: re.Match[str]) -> str:
        if place["object"]:
            return f"{identifier(schema)}.{place['object']}"
        if place["name"]:
            return identifier(variables[place["name"]] or "")
        return literal(variables[place["value"]])

    return _PLACE.sub(fill, sql)


def identifier(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def literal(value: str | None) -> str:
    if value is None:
        return "null"
    if re.fullmatch(r"-?\d{1,19}", value):
        return value
    return "'" + value.replace("'", "''") + "'"


class Session:
    """One connection in autocommit; transactions begin and end in plain SQL."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._heard: list[tuple[str, str]] = []
        self._started: Future[Answer] | None = None
        connection.add_notify_handler(lambda n: self._heard.append((n.channel, n.payload)))

    def ask(self, statement: str) -> Answer:
        """Send a statement and wait for its answer; raises only when the connection is lost."""
        try:
            cursor = self._connection.execute(statement.encode())
        except psycopg.Error as error:
            if error.sqlstate is None or self._connection.closed:
                raise
            return Answer(error.sqlstate, None, error.diag.message_primary or "")
        result = cursor.pgresult
        if result is None or not result.nfields:
            return Answer(DONE)
        if result.ntuples == 0:
            return Answer("nothing")
        values = [
            None if (value := result.get_value(0, column)) is None else value.decode()
            for column in range(result.nfields)
        ]
        names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]
        row = dict(zip(names, values, strict=True)) if result.ntuples == 1 else None
        return Answer("null" if values[0] is None else values[0], row)

    def start(self, statement: str) -> None:
        """Send a statement that is expected to wait for another session."""
        started: Future[Answer] = Future()

        def run() -> None:
            try:
                started.set_result(self.ask(statement))
            except BaseException as error:
                started.set_exception(error)

        threading.Thread(target=run, name="tenure-verify", daemon=True).start()
        self._started = started

    @property
    def answered(self) -> Answer | None:
        """The answer of what was started, if it is there."""
        started = self._started
        return started.result() if started is not None and started.done() else None

    def end(self, within: float | None = None) -> Answer:
        """The answer of what was started; that there is none when it takes too long."""
        within = WITHIN if within is None else within
        assert self._started is not None
        try:
            answer = self._started.result(within)
        except TimeoutError:
            return Answer(f"no answer within {within:g} s")
        self._started = None
        return answer

    def hear(self, channel: str, word: str, within: float = 10.0) -> list[tuple[str, str]] | None:
        """The (channel, payload)s that came before a word on a channel; None: it never came."""
        end = time.monotonic() + within
        pgconn = self._connection.pgconn
        with selectors.DefaultSelector() as selector:
            selector.register(self._connection.fileno(), selectors.EVENT_READ)
            while (channel, word) not in self._heard:
                pgconn.consume_input()
                while (notify := pgconn.notifies()) is not None:
                    self._heard.append((notify.relname.decode(), notify.extra.decode()))
                if (channel, word) in self._heard:
                    break
                if (left := end - time.monotonic()) <= 0:
                    return None
                selector.select(left)
        heard, self._heard = self._heard, []
        return heard[: heard.index((channel, word))]

    @property
    def direct(self) -> bool:
        """Whether no pooler stands in between, as far as one can tell from here."""
        return self.ask("select pg_backend_pid()").text == str(self._connection.info.backend_pid)

    def reset(self) -> None:
        """Leave whatever transaction is open."""
        if self._started is not None:
            self.end(30.0)
        if self._connection.info.transaction_status is not TransactionStatus.IDLE:
            self.ask("rollback")

    def close(self) -> None:
        self._connection.close()
