"""Functions that handle a kind of job, with the settings of its jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from tenure import limits
from tenure.errors import InvalidArgument
from tenure.requests import check_job
from tenure.values import NewJob
from tenure.worker import Handler

Errors: TypeAlias = type[BaseException] | tuple[type[BaseException], ...]
"""A class of exceptions, or several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One kind, its handler, and what its jobs are enqueued with unless a call says otherwise."""

    kind: str
    handler: Handler = field(repr=False)
    queue: str = "default"
    priority: int = 5
    max_attempts: int = 5
    timeout: timedelta | None = None
    retry_base: timedelta | None = None
    retry_cap: timedelta | None = None
    retry_on: Errors | None = None
    """Only these are worth another attempt; None: all are."""
    no_retry_on: Errors = ()
    """These are not; comes before `retry_on`."""
    slots: Literal["process"] | None = None
    """Where its handler runs: in a child process; None: in a thread, an `async def` on a loop."""

    def retryable(self, error: BaseException) -> bool:
        """Whether the job is worth another attempt after its handler raised this."""
        if isinstance(error, self.no_retry_on):
            return False
        return self.retry_on is None or isinstance(error, self.retry_on)

    def new_job(
        self,
        payload: Any,
        *,
        queue: str | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: timedelta | None = None,
        max_attempts: int | None = None,
        dedup_key: str | None = None,
        timeout: timedelta | None = None,
        retry_base: timedelta | None = None,
        retry_cap: timedelta | None = None,
        meta: Any = None,
    ) -> NewJob:
        """A job of this kind; what is given and not None comes before the task's own."""
        return NewJob(
            self.kind,
            self.queue if queue is None else queue,
            payload,
            self.priority if priority is None else priority,
            run_at,
            delay,
            self.max_attempts if max_attempts is None else max_attempts,
            dedup_key,
            self.timeout if timeout is None else timeout,
            self.retry_base if retry_base is None else retry_base,
            self.retry_cap if retry_cap is None else retry_cap,
            meta,
        )


class Tasks(Mapping[str, Handler]):
    """The handlers of an app by kind, as `Worker` wants them."""

    def __init__(self) -> None:
        self._by_kind: dict[str, Task] = {}
        self._by_handler: dict[Callable[..., Any], Task] = {}

    def add(self, task: Task) -> None:
        """Raises `InvalidArgument` for settings that no job may have, or a kind that is taken."""
        check_job(task.new_job(None))
        if task.slots not in (None, "process"):
            raise InvalidArgument(
                f"slots is {limits.short(task.slots)}", hint="'process', or leave it out"
            )
        check_errors(task.retry_on, "retry_on")
        check_errors(task.no_retry_on, "no_retry_on")
        if task.kind in self._by_kind:
            raise InvalidArgument(
                f"the kind {task.kind!r} has a handler already", hint="give this one name=..."
            )
        self._by_kind[task.kind] = self._by_handler[task.handler] = task

    def find(self, kind_or_task: str | Callable[..., Any]) -> Task:
        """The task of a decorated function or a kind; an unknown kind has the usual settings."""
        if isinstance(kind_or_task, str):
            known = self._by_kind.get(kind_or_task)
            return known or _unknown(kind_or_task)
        try:
            return self._by_handler[kind_or_task]
        except (KeyError, TypeError):
            raise InvalidArgument(
                f"{limits.short(kind_or_task)} is no task of this app",
                hint="decorate it with @app.task, or pass its kind as a str",
            ) from None

    def retryable(self, kind: str, error: BaseException) -> bool:
        """Whether a job of this kind is worth another attempt after this."""
        task = self._by_kind.get(kind)
        return task is None or task.retryable(error)

    def known(self) -> list[Task]:
        """All of them, in the order of their definition."""
        return list(self._by_kind.values())

    @property
    def queues(self) -> list[str]:
        """The queues of the tasks, in the order of their definition."""
        return list(dict.fromkeys(task.queue for task in self._by_kind.values()))

    def __getitem__(self, kind: str) -> Handler:
        return self._by_kind[kind].handler

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_kind)

    def __len__(self) -> int:
        return len(self._by_kind)


def check_errors(value: object, what: str) -> None:
    """Raise `InvalidArgument` for what is no class of exceptions and no tuple of them."""
    if value is None and what == "retry_on":
        return
    members = value if isinstance(value, tuple) else (value,)
    for member in members:
        if not (isinstance(member, type) and issubclass(member, BaseException)):
            raise InvalidArgument(
                f"{what} is no class of exceptions: {limits.short(member)}",
                hint="pass one, or a tuple of them",
            )


@lru_cache
def _unknown(kind: str) -> Task:
    return Task(kind=kind, handler=_nobody)


def _nobody(_: Any) -> None:
    raise LookupError("this process only enqueues the kind")
