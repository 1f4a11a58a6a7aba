"""One of the databases that are asked the same, with its jobs numbered as they were enqueued."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tenure.errors import TenureError
from tenure.records import AttemptRecord, JobRecord, QueueRecord
from tenure.sqlite_values import micros
from tests import model
from tests.contract.backends import Backend, Pool, Postgres, Sqlite
from tests.model.backend import Model

UNKNOWN = -1
"""The number of a job that there never was."""
UNKNOWN_ID = 10**12

Execute = Callable[[str, int, Any], object]


class Side:
    """A backend; numbers stand for its ids, so that its answers compare with another's."""

    def __init__(self, name: str, backend: Backend, execute: Execute) -> None:
        self.name = name
        self.backend = backend
        self.plane = backend.control_plane
        self.records = backend.records
        self._execute = execute
        self._ids: list[int] = []
        self._numbers: dict[int, int] = {}

    def id(self, number: int) -> int:
        return UNKNOWN_ID if number == UNKNOWN else self._ids[number]

    def number(self, job_id: int) -> int:
        return UNKNOWN if job_id == UNKNOWN_ID else self._numbers[job_id]

    def enrol(self, job_id: int) -> None:
        """Give a job that was just enqueued the next number."""
        if job_id not in self._numbers:
            self._numbers[job_id] = len(self._ids)
            self._ids.append(job_id)

    def answer(self, call: Callable[[Side], Any]) -> Any:
        """What the call returns or raises, with numbers for ids."""
        try:
            return self.plain(call(self))
        except TenureError as error:
            return type(error).__name__

    def plain(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.plain(member) for member in value]
        if hasattr(value, "_replace") and hasattr(value, "job_id"):
            return value._replace(job_id=self.number(value.job_id))
        if dataclasses.is_dataclass(value) and hasattr(value, "job_id"):
            assert not isinstance(value, type)
            return replace(value, job_id=self.number(value.job_id))
        return value

    def jobs(self) -> dict[int, JobRecord]:
        found = self.plain(self.records.jobs(limit=10_000))
        return {job.job_id: job for job in reversed(found)}

    def attempts(self, number: int) -> list[AttemptRecord]:
        found: list[AttemptRecord] = self.plain(self.records.attempts(self.id(number)))
        return found

    def set_due(self, number: int, due: datetime) -> None:
        self._execute("next_attempt_at", self.id(number), due)

    def queues(self) -> list[QueueRecord] | None:
        """None where nobody looks at queues."""
        return self.records.queues()

    def written(self) -> list[str] | None:
        return sorted(self.backend.written())

    def set_token(self, number: int, token: int) -> None:
        self._execute("token", self.id(number), token)


class ModelSide(Side):
    """The model of the contract, which has jobs and no tables."""

    def __init__(self) -> None:
        self._model = Model()
        super().__init__("the model", self._model, self._overwrite)

    def jobs(self) -> dict[int, JobRecord]:
        found = {self.number(i): self._model.world.shown(i) for i in self._model.world.jobs}
        return {n: replace(job, job_id=n) for n, job in found.items() if job is not None}

    def set_due(self, number: int, due: datetime) -> None:
        """Raises `Disagreement` where the model does not permit it."""
        self._model.world = model.observe(self._model.world, self.id(number), due)

    def queues(self) -> None:
        return None

    def written(self) -> None:
        return None

    def _overwrite(self, column: str, job_id: int, value: Any) -> None:
        world = self._model.world
        self._model.world = world.changed(world.jobs[job_id], **{column: value})


def postgres(pool: Pool, stack: ExitStack) -> Side:
    """Over a database of its own, which is emptied."""
    backend = Postgres(pool, stack)
    own = stack.enter_context(pool.connection())
    own.execute("update tenure.install set stragglers_sought_at = default, stragglers_cost = '0'")

    def execute(column: str, job_id: int, value: Any) -> None:
        own.execute(f"update tenure.job set {column} = %s where id = %s".encode(), (value, job_id))

    return Side("PostgreSQL", backend, execute)


def sqlite(path: Path, stack: ExitStack) -> Side:
    backend = Sqlite(path, stack)
    own = stack.enter_context(closing(sqlite3.connect(path, isolation_level=None)))

    def execute(column: str, job_id: int, value: Any) -> None:
        stored = micros(value) if isinstance(value, datetime) else value
        own.execute(f"update tenure_job set {column} = ? where id = ?", (stored, job_id))

    return Side("SQLite", backend, execute)
