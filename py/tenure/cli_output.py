"""How records and answers are printed: JSON for programs, tables for people."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

_PIPE_WIDTH = 10_000

json_option: Callable[[Any], Any] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON; times are ISO 8601, durations seconds."
)


def print_json(value: Any) -> None:
    """Print records, or whatever JSON can hold of them, as one document."""
    click.echo(json.dumps(plain(value), ensure_ascii=False, indent=2))


def plain(value: Any) -> Any:
    """`value` as JSON has it: a record by its field names, moments in UTC, durations in seconds."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(member) for name, member in value._asdict().items()}
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(member) for member in value]
    return value


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows below their columns; a terminal's width cuts them, a pipe does not."""
    console = Console(highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    table = Table(box=None, pad_edge=False, header_style="bold" if console.is_terminal else "")
    for column in columns:
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*(Text(cell(value)) for value in row))
    console.print(table)


def cell(value: object) -> str:
    """A value in the space of a cell or a line, safe to print on a terminal."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g} s"
    if isinstance(value, (dict, list)):
        return printable(json.dumps(value, ensure_ascii=False))
    return one_line(str(value))


def one_line(text: str) -> str:
    """`text` without line breaks, and safe to print on a terminal."""
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    """`text` with what could steer a terminal, such as ESC, written as an escape."""
    return re.sub(r"[^\n]", _escaped, text)


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    return character if character.isprintable() else character.encode("unicode_escape").decode()
