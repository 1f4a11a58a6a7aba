"""Calls the functions at random, and judges what comes back."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import psycopg

from tests.fuzz.arguments import Arguments, Known
from tests.fuzz.catalogue import Function
from tests.fuzz.literals import literal
from tests.fuzz.world import Sight, World

PATIENCE = 5
"""Seconds that a statement may take when nobody else is there."""

A_WORLD = 250
"""Calls; then it is built anew."""
MOST_JOBS = 200
"""More would make looking at them slow."""

NO_TRANSACTION = {"25P01"}
"""The end of a transaction that was never begun."""

PRELUDES = [
    "begin isolation level repeatable read",
    "begin isolation level serializable",
    "begin isolation level serializable read only",
    "begin; select pg_current_xact_id()",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """A call that did what it may not, as psql takes it."""

    statement: str
    what: str

    def __str__(self) -> str:
        return f"-- {self.what}\n{self.statement}"


@dataclass
class Fuzz:
    """Sessions by role ('' is the owner's), the functions, and what was found so far."""

    sessions: dict[str, psycopg.Connection[Any]]
    observer: str
    """The role that may read the views."""
    functions: list[Function]
    world: World
    draw: random.Random
    calls: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    slowest: tuple[float, str] = (0, "")

    def __post_init__(self) -> None:
        self._left = 0
        """Calls, until the world is built anew."""
        self._warnings: list[str] = []
        """Of one call: a sweep says so when a job cannot be decided about."""
        for session in self.sessions.values():
            session.add_notice_handler(self._hear)
        self._known, self._sight = self._begin()

    def run(self, calls: int) -> None:
        for _ in range(calls):
            if self._left == 0 or self._sight.jobs > MOST_JOBS:
                self._read_views()
                self._known, self._sight = self._begin()
            if self._left % 10 == 0:
                self._known = self.world.known()
            self._left -= 1
            self.one()

    def one(self) -> None:
        [function] = self.draw.choices(
            self.functions, [1 + len(f.parameters) for f in self.functions]
        )
        anybody = self.draw.random() < 0.15
        role = self.draw.choice(list(self.sessions) if anybody else ["", *sorted(function.roles)])
        statement = self._statement(function)
        prelude = self.draw.choice(PRELUDES) if self.draw.random() < 0.1 else ""
        self._warnings.clear()
        started = time.monotonic()
        error = self._call(self.sessions[role], prelude, statement)
        seconds = time.monotonic() - started

        before = self._sight
        self._sight = self._look(before.at)
        shown = "\n".join(
            f"{line};"
            for line in ("reset role", role and f'set role "{role}"', prelude, statement)
            if line
        )
        self.calls += 1
        self.answers[error.sqlstate or "?" if error else "ok"] += 1
        self.slowest = max(self.slowest, (seconds, shown))
        wrong = self._wrong(function, role, prelude, error)
        if error is not None and self._sight.rows != before.rows:
            wrong = wrong or f"{error.sqlstate}, yet something changed"
        if late := self._sight.due_before - before.due:
            wrong = wrong or f"due before the call: {late}"
        if self._warnings:
            wrong = wrong or f"warned: {self._warnings}"
        if self._sight.lapsed:
            wrong = wrong or f"leases that lapsed before they were granted: {self._sight.lapsed}"
        if wrong:
            self.findings.append(Finding(shown, wrong))
            self._known, self._sight = self._begin()

    def _begin(self) -> tuple[Known, Sight]:
        self._left = A_WORLD
        self.world.build()
        return self.world.known(), self._look(datetime.now(UTC))

    def _statement(self, function: Function) -> str:
        arguments = Arguments(self.draw, self._known)
        given = len(function.parameters) - self.draw.randint(0, function.defaults)
        places = [
            f"{name} => {literal(arguments.value(name.removeprefix('p_'), type_), type_)}"
            for name, type_ in function.parameters[:given]
        ]
        return f"select * from tenure.{function.name}({', '.join(places)})"

    def _call(
        self, session: psycopg.Connection[Any], prelude: str, statement: str
    ) -> psycopg.Error | None:
        try:
            if prelude:
                session.execute(prelude.encode())
            session.execute(statement.encode()).fetchall()
        except psycopg.Error as error:
            return error
        else:
            return None
        finally:
            if prelude:
                session.execute("rollback" if self.draw.random() < 0.5 else "commit")

    def _wrong(
        self, function: Function, role: str, prelude: str, error: psycopg.Error | None
    ) -> str | None:
        may = not role or role in function.roles
        if error is None:
            return None if may else "a role without the right was let in"
        code, message = error.sqlstate, error.diag.message_primary
        if not may:
            return None if code == "42501" else f"{code} for a role without the right: {message}"
        if "read only" in prelude and code == "25006":
            return None
        if code not in function.codes:
            return f"{code}, which {function.name} does not document: {message}"
        if code == "22023" and not error.diag.message_hint:
            return f"22023 without a hint: {message}"
        return None

    def _hear(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING" and notice.sqlstate not in NO_TRANSACTION:
            self._warnings.append(notice.message_primary or "")

    def _read_views(self) -> None:
        """Whatever the calls have left can be looked at."""
        for view in self.world.views():
            for role in ("", self.observer):
                if error := self._call(self.sessions[role], "", f"select * from tenure.{view}"):
                    self.findings.append(Finding(f"select * from tenure.{view};", str(error)))

    def _look(self, before: datetime) -> Sight:
        return self.world.sight([s.info.backend_pid for s in self.sessions.values()], before)
