"""Reads what pan, the checker that spin makes of a specification, prints."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one search."""

    states: int
    """Stored, so distinct."""
    transitions: int
    depth: int
    megabytes: float
    seconds: float
    errors: int
    trouble: str | None
    """Why there is an error, or why the search was not exhaustive."""
    unreached: frozenset[str]
    """Statements that no run executes, as process, line and text."""


class Unreadable(Exception):
    """What pan printed is no report."""


def read(text: str) -> Report:
    """The report in what pan printed; raises Unreadable when there is none."""
    return Report(
        states=int(_number(r"^ *(\d+) states, stored", text)),
        transitions=int(_number(r"^ *(\d+) transitions", text)),
        depth=int(_number(r"depth reached (\d+),", text)),
        megabytes=_number(r"^ *([\d.e+]+)\ttotal actual memory usage", text),
        seconds=_number(r"^pan: elapsed time ([\d.e+-]+) seconds", text),
        errors=int(_number(r"errors: (\d+)$", text)),
        trouble=_trouble(text),
        unreached=_unreached(text),
    )


def _number(pattern: str, text: str) -> float:
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise Unreadable(f"no {pattern!r} in:\n{text[-2000:]}")
    return float(found[1])


def _trouble(text: str) -> str | None:
    error = re.search(r"^pan:\d+: (.*?)(?: \(at depth \d+\))?$", text, re.MULTILINE)
    if error is not None:
        return error[1]
    warning = re.search(r"^(?:error|warning): (.*)$", text, re.MULTILINE | re.IGNORECASE)
    if warning is not None:
        return warning[1]
    if "Full statespace search" not in text:
        return "the search was not exhaustive"
    return None


def _unreached(text: str) -> frozenset[str]:
    """All but the ends of processes that never end, and the never claim of the `ltl` property."""
    found = set()
    process = ""
    for line in text.splitlines():
        heading = re.match(r"unreached in (?:proctype )?(\w+)", line)
        statement = re.match(r'\t[\w.]+:(\d+), state \d+, "(.*)"$', line)
        if heading:
            process = heading[1]
        elif statement and process != "claim" and statement[2] != "-end-":
            found.add(f"{process}, line {statement[1]}: {statement[2]}")
    return frozenset(found)
