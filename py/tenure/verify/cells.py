"""What a matrix is made of: cells, each a script of SQL lines with the answers that must come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

ANY = "*"
"""The answer of a line that is not looked at."""

SAVED = None
"""One row must come, and its columns become variables for the lines that follow."""

DONE = "done"
"""The answer of a statement without rows, such as begin."""


class Kind(StrEnum):
    """How a line is run."""

    ASK = "ask"  # and compare the answer
    UNTIL = "until"  # ask again until the answer comes
    START = "start"  # ask, and go on while it waits for somebody
    END = "end"  # the answer of what was started
    HEAR = "hear"  # what the session was notified of, up to a notification sent now


class Line(NamedTuple):
    """One statement of one session.

    `@name` stands for the install's object of that name, `:name` for a variable's literal and
    `:"name"` for its identifier. `must` may name a variable too.
    """

    sql: str
    must: str | None = SAVED
    by: str = "a"
    kind: Kind = Kind.ASK


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A script, and the place of its outcome in a table."""

    matrix: str
    row: str
    column: str
    lines: Sequence[Line]
    promise: str
    """Which one is broken when an answer is another: a key of `promises.PROMISES`."""
    variables: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    """Cells of one group are run side by side, a line of each in turn, so that they wait for
    their leases to lapse together; "": alone."""
    listens: bool = False

    @property
    def lapses(self) -> bool:
        """Whether it leaves a lapsed lease alone for a while, for any worker to sweep."""
        return LAPSE in self.lines


class Mark(StrEnum):
    """What became of a cell."""

    PASS = "pass"
    FAIL = "fail"
    IMPOSSIBLE = "not possible here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome of a cell, with what was said until it was known."""

    matrix: str
    row: str
    column: str
    mark: Mark
    promise: str
    """In the words of docs/guarantees.md."""
    statements: Sequence[str] = ()
    came: str = ""
    must: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Cells under a title."""

    name: str
    title: str
    cells: Callable[[], Iterable[Cell]]


LAPSE = Line(
    "select exists (select from @lapsed(10000) as l where l.job_id = :job)", "t", kind=Kind.UNTIL
)
"""Waits until the database says that the lease is past its time."""
