"""A bar on a terminal, a few lines elsewhere."""

from __future__ import annotations

import io

from rich.console import Console

from tenure.demo.display import Display


def _shown(console: Console) -> str:
    with Display(console) as display:
        display.begin(8)
        display.say("a [bold]line")
        for done in range(9):
            display.reached(done)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_without_a_terminal_there_is_a_line_per_quarter() -> None:
    shown = _shown(Console(file=io.StringIO()))
    assert shown.splitlines() == [
        "a [bold]line",
        *(f"{done} of 8 jobs have ended" for done in (2, 4, 6, 8)),
    ]


def test_on_a_terminal_there_is_a_bar() -> None:
    shown = _shown(Console(file=io.StringIO(), force_terminal=True, width=100))
    assert "a [bold]line" in shown
    assert "8/8" in shown
    assert "jobs have ended" not in shown
