"""What a parent process and a child that runs handlers say to each other."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import multiprocessing.spawn
import os
import pickle
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tenure.codec import JsonText
from tenure.errors import InvalidArgument
from tenure.tasks import Task
from tenure.transactions import Transactions
from tenure.values import JobLease, Outcome

_HINT = "define it at the top level of a module, under its own name"


@dataclass(frozen=True, slots=True)
class Load:
    """First, from the parent: what the child is to import, and how it is to log."""

    tasks: bytes
    transactions: bytes
    main: dict[str, Any]
    """The parent's arguments, and how to import its program if a handler is in it."""
    log_level: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """The child's answer; with an error when it cannot find what it was told to."""

    error: str | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """From the parent: run this."""

    lease: JobLease
    granted: float
    lease_for: timedelta


@dataclass(frozen=True, slots=True)
class Call:
    """From the child: call this method of the job; answered by an `Answer`."""

    method: str
    value: JsonText | None


@dataclass(frozen=True, slots=True)
class Answer:
    value: Any = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Logged:
    """From the child: a record for the parent's log."""

    record: logging.LogRecord


@dataclass(frozen=True, slots=True)
class Done:
    """From the child: the handler has ended."""

    outcome: Outcome | None
    ended: bool
    lost: str | None


def load_for(tasks: Sequence[Task], transactions: Transactions | None) -> Load:
    """What a child needs to run these tasks.

    Raises `InvalidArgument` when it would not find the handler of one: a function is found by
    the name of its module and its own name in there, and by nothing else.
    """
    for task in tasks:
        _check_found(task)
    in_main = any(getattr(task.handler, "__module__", "") == "__main__" for task in tasks)
    return Load(
        tasks=pickle.dumps(list(tasks)),
        transactions=pickle.dumps(transactions),
        main={"sys_argv": sys.argv} | (_main() if in_main else {}),
        log_level=min(logging.root.level, logging.getLogger("tenure").getEffectiveLevel()),
    )


def tasks_of(load: Load) -> tuple[list[Task], Transactions | None]:
    """In the child: import what was named. Raises whatever the modules raise."""
    multiprocessing.spawn.prepare(load.main)
    tasks: list[Task] = pickle.loads(load.tasks)
    transactions: Transactions | None = pickle.loads(load.transactions)
    return tasks, transactions


def _check_found(task: Task) -> None:
    try:
        pickle.dumps(task)
    except Exception as error:
        raise InvalidArgument(
            f"a child process cannot find the handler of {task.kind!r}: {error}", hint=_HINT
        ) from None
    module = getattr(task.handler, "__module__", None)
    if module is not None and module != "__main__" and not _is_importable(module):
        raise InvalidArgument(
            f"a child process cannot import {module!r}, for the handler of {task.kind!r}",
            hint=_HINT,
        )


def _is_importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _main() -> dict[str, Any]:
    """How to import the program itself: as multiprocessing does, under another name."""
    main = sys.modules["__main__"]
    name = getattr(main.__spec__, "name", None)
    path = getattr(main, "__file__", None)
    if name is not None and name.rpartition(".")[2] != "__main__":
        return {"init_main_from_name": name}
    if name is None and path is not None:
        return {"init_main_from_path": os.path.abspath(path)}
    raise InvalidArgument("a child process cannot import the program itself", hint=_HINT)


_loading = False


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """In the child, while it imports what it was told to."""
    global _loading
    _loading = True
    try:
        yield
    finally:
        _loading = False


def refuse_while_loading() -> None:
    """Raise `InvalidArgument` in a child that would start children in turn, for ever."""
    if _loading:
        raise InvalidArgument(
            "a runner is made where a child process imports its handlers",
            hint='make it under: if __name__ == "__main__":',
        )
