"""What is seen while the demo runs: a bar on a terminal, a few lines elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_STEP = 25
"""Per cent between two lines."""


class Display:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("analysed"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("analysed", total=None)
        self._total = 1
        self._said = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def begin(self, total: int) -> None:
        self._total = total
        self._bar.update(self._task, total=total)

    def say(self, line: str) -> None:
        self._bar.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def reached(self, done: int) -> None:
        """So many jobs have ended."""
        self._bar.update(self._task, completed=done)
        step = 100 * done // self._total // _STEP * _STEP
        if self._bar.disable and step > self._said:
            self._said = step
            self.say(f"{done} of {self._total} jobs have ended")
