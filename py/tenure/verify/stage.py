"""Where the cells are played: an install, sessions on it, and names that are nobody else's."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Mapping

from tenure.bounded import BoundedConnection
from tenure.verify.session import Answer, Session, rendered
from tenure.verify.words import ROW, ROW_BY_FUNCTIONS, ROW_BY_VIEWS

ANSWER_WITHIN = 30.0
"""Seconds after which a server, or a pooler that has none left, is taken to be stuck."""

TRIES_AGAIN = 40
"""One sweep disturbs no more than two dozen cells; what fails oftener fails by itself."""


class Stage:
    """An install's functions, and what this run has made with them."""

    def __init__(
        self,
        connect: Callable[[], BoundedConnection],
        *,
        schema: str,
        shared: bool,
    ) -> None:
        """`shared`: the install is an existing one, whose workers may sweep at any time."""
        self.schema = schema
        self._tries_left = TRIES_AGAIN if shared else 0
        self.rows_are_seen = True
        self._connect = connect
        self._sessions: dict[str, Session] = {}
        self._numbers = itertools.count(1)
        self.name = f"verify-{secrets.token_hex(4)}"
        self.workers = {role: f"{self.name}-{role}" for role in ("me", "other", "broom")}
        self.queues: list[str] = []
        self.jobs: set[int] = set()

    def session(self, letter: str) -> Session:
        if letter not in self._sessions:
            connection = self._connect()
            connection.answer_within = ANSWER_WITHIN
            self._sessions[letter] = Session(connection)
        return self._sessions[letter]

    def variables(self, given: Mapping[str, str]) -> dict[str, str | None]:
        """What the lines of one cell may name, with a queue of its own."""
        number = next(self._numbers)
        self.queues.append(f"{self.name}-{number}")
        return {
            **self.workers,
            "queue": self.queues[-1],
            "barrier": self.barrier,
            "word": f"end of cell {number}",
            **given,
        }

    @property
    def barrier(self) -> str:
        """A channel that nobody else uses."""
        return self.name.replace("verify-", "tenure_verify_")

    def statement(self, sql: str, variables: Mapping[str, str | None]) -> str:
        if sql == ROW:
            sql = ROW_BY_VIEWS if self.rows_are_seen else ROW_BY_FUNCTIONS
        return rendered(sql, self.schema, variables)

    def ask(self, sql: str, by: str = "a", **variables: str) -> Answer:
        """A statement outside the cells."""
        return self.session(by).ask(self.statement(sql, variables))

    def may_try_again(self) -> bool:
        """Whether somebody else's sweep may have disturbed a cell, and not too many already."""
        self._tries_left -= 1
        return self._tries_left >= 0

    def note(self, answer: Answer) -> None:
        """Remember the jobs that were made, so that they can be ended."""
        for name, value in (answer.row or {}).items():
            if name in ("job", "job2") and value is not None:
                self.jobs.add(int(value))

    def reset(self) -> None:
        """Leave the transactions that a cell left open, the first session's first."""
        for _, session in sorted(self._sessions.items()):
            session.reset()

    def close(self) -> None:
        """Close the sessions, the first one first: others may wait for it."""
        for _, session in sorted(self._sessions.items()):
            session.close()
        self._sessions.clear()
