"""The model in the place of a database, for tests that are written for any."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, cast

from tenure.control_plane import ControlPlane
from tenure.records import AttemptRecord, JobRecord, Records
from tests import model
from tests.contract.backends import START, Caller, Clock


class Model:
    """A `Backend` whose whole state is one world."""

    lacks: ClassVar[dict[str, str]] = {}

    def __init__(self) -> None:
        self.world = model.World(now=START)
        self.clock = Clock(self._tell)
        self.control_plane = cast(ControlPlane, _Plane(self))
        self.records = cast(Records, _Records(self))

    def another(self) -> ControlPlane:
        return self.control_plane

    @contextmanager
    def transaction(self) -> Iterator[Caller]:
        before = self.world
        try:
            yield Caller(self.control_plane, lambda row: None)
        except BaseException:
            self.world = before
            raise

    def written(self) -> list[str]:
        return []

    def set_attempt(self, job_id: int, attempt: int) -> None:
        self.world = self.world.changed(self.world.jobs[job_id], attempt=attempt)

    def _tell(self, now: Any) -> None:
        self.world = model.at(self.world, now)


class _Plane:
    """Each verb of the model as a method that raises what is answered as a class."""

    def __init__(self, backend: Model) -> None:
        self._backend = backend

    def __getattr__(self, verb: str) -> Any:
        function = getattr(model, verb)

        def call(*arguments: Any, **options: Any) -> Any:
            before = self._backend.world
            after, answer = function(before, *arguments, **options)
            assert model.broken(before, after, verb) == []
            self._backend.world = after
            if isinstance(answer, type) and issubclass(answer, Exception):
                raise answer(f"the model answers {answer.__name__}")
            return answer

        return call


class _Records:
    def __init__(self, backend: Model) -> None:
        self._backend = backend

    def job(self, job_id: int) -> JobRecord | None:
        return self._backend.world.shown(job_id)

    def attempts(self, job_id: int) -> list[AttemptRecord]:
        job = self._backend.world.job(job_id)
        return [] if job is None else list(job.attempts)
