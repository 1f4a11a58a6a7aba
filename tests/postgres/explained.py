"""Plans and buffers of whatever a session runs, down to the statements inside functions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeAlias

import psycopg
import pytest

from tests.postgres.races import Connection, call

Shape: TypeAlias = tuple[Any, ...]
"""A node of a plan: its type, what it reads by which index, and the nodes below it."""


def explaining(connection: Connection) -> Explaining:
    """Let a session report its plans; skips the test where it may not."""
    try:
        connection.execute("load 'auto_explain'")
        connection.execute(
            """
            set client_min_messages = log;
            set auto_explain.log_analyze = on;
            set auto_explain.log_buffers = on;
            set auto_explain.log_timing = off;
            set auto_explain.log_format = json
            """
        )
    except psycopg.Error as error:
        pytest.skip(f"auto_explain cannot be had: {error}")
    return Explaining(connection)


@dataclass(frozen=True, slots=True)
class Explaining:
    connection: Connection

    def shapes(self, run: Callable[[Connection], object]) -> dict[str, Shape]:
        """The plan of each statement that reads or writes a table of tenure, by its text."""
        return {
            explained["Query Text"]: shape(explained["Plan"])
            for explained in self._explained(run, nested=True)
            if any("Relation Name" in node for node in nodes(explained["Plan"]))
        }

    def buffers(self, run: Callable[[Connection], object], times: int = 5) -> int:
        """How many pages a call touches, functions inside it included: the median of some."""
        return int(median(self._buffers(run) for _ in range(times)))

    def _buffers(self, run: Callable[[Connection], object]) -> int:
        [explained] = self._explained(run, nested=False)
        plan = explained["Plan"]
        return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])

    def _explained(
        self, run: Callable[[Connection], object], *, nested: bool
    ) -> list[dict[str, Any]]:
        texts: list[str] = []

        def keep(message: psycopg.errors.Diagnostic) -> None:
            texts.append(message.message_primary or "")

        self.connection.execute(
            f"""
            set auto_explain.log_nested_statements = {"on" if nested else "off"};
            set auto_explain.log_min_duration = 0
            """
        )
        self.connection.add_notice_handler(keep)
        try:
            run(self.connection)
        finally:
            self.connection.remove_notice_handler(keep)
            self.connection.execute("set auto_explain.log_min_duration = -1")
        return [json.loads(text.split("plan:", 1)[1]) for text in texts if "plan:" in text]


def shape(plan: dict[str, Any]) -> Shape:
    return (
        plan["Node Type"],
        plan.get("Relation Name"),
        plan.get("Index Name"),
        *(shape(below) for below in plan.get("Plans", ())),
    )


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


def parts(shape: Shape) -> Iterator[tuple[str, str | None, str | None]]:
    """Each node of a shape by itself."""
    yield shape[0], shape[1], shape[2]
    for below in shape[3:]:
        yield from parts(below)


def claim_one(connection: Connection) -> None:
    assert len(call(connection, "claim", ["q"], "ada", solo=False)) == 1
