"""A run for people: a table for each matrix, a paragraph for each failure, a line at the end."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

import click

from tenure.cli_output import print_table, printable
from tenure.verify.cells import Mark, Matrix, Result
from tenure.verify.run import Report
from tenure.verify.session import identifier, literal

_SIGNS = {Mark.PASS: "✓", Mark.FAIL: "✗", Mark.IMPOSSIBLE: "–"}  # noqa: RUF001
_PLAIN_SIGNS = {Mark.PASS: "+", Mark.FAIL: "X", Mark.IMPOSSIBLE: "-"}


@dataclass(frozen=True, slots=True)
class Counts:
    """How many cells there were of each mark."""

    cells: int
    passed: int
    failed: int
    not_possible: int


def counts(report: Report) -> Counts:
    marks = Counter(result.mark for results in report.results.values() for result in results)
    return Counts(marks.total(), marks[Mark.PASS], marks[Mark.FAIL], marks[Mark.IMPOSSIBLE])


def print_matrix(matrix: Matrix, report: Report) -> None:
    """The table of one matrix: a row for each verb, a lettered column for each situation."""
    results = report.results[matrix.name]
    columns = _distinct(result.column for result in results)
    # In the order of the column that has most of them.
    sizes = Counter(result.column for result in results)
    rows = _distinct(r.row for r in sorted(results, key=lambda r: -sizes[r.column]))
    signs = _signs()
    marks = {(result.row, result.column): signs[result.mark] for result in results}
    click.echo(f"{matrix.title}\n")
    print_table(
        [matrix.name, *ascii_lowercase[: len(columns)]],
        [[row, *(marks.get((row, column), "") for column in columns)] for row in rows],
    )
    click.echo()
    for letter, column in zip(ascii_lowercase, columns, strict=False):
        click.echo(f"{letter}  {column}")
    click.echo()


def print_end(report: Report) -> None:
    """The failures, what was not possible and why, what stays, and the summary."""
    results = [result for some in report.results.values() for result in some]
    for result in results:
        if result.mark is Mark.FAIL:
            click.echo(failure(result) + "\n")
    reasons = Counter(result.reason for result in results if result.mark is Mark.IMPOSSIBLE)
    for reason, times in reasons.items():
        click.echo(f"{times} cells not possible here: {reason}")
    if not report.rows_compared:
        click.echo(
            f"role {report.role} may not read the views, so rows were compared as far as functions"
            f" show them; for all of it: select {identifier(report.schema)}.grant_role("
            f"{literal(report.role)}, 'observe');"
        )
    if report.left:
        click.echo(report.left)
    count = counts(report)
    click.echo(
        f"{count.cells} cells: {count.passed} pass, {count.failed} fail,"
        f" {count.not_possible} not possible here"
    )


def failure(result: Result) -> str:
    """What was said to the database, what came, what must come, and what that breaks."""
    came, must = _difference(result.came, result.must)
    statements = "".join(f"  {printable(statement)}\n" for statement in result.statements)
    return (
        f"{result.matrix}: {result.row}, {result.column}\n{statements}"
        f"  came: {printable(came)}\n  must: {printable(must)}\n"
        f"  breaks: {result.promise}"
    )


def _difference(came: str, must: str) -> tuple[str, str]:
    """Of two rows that are JSON, the fields that differ."""
    try:
        [is_row, *is_rest], [was_row, *was_rest] = json.loads(came), json.loads(must)
        changed = [key for key in is_row if is_row[key] != was_row[key]]
    except (ValueError, TypeError, KeyError):
        return came, must
    if is_rest != was_rest:
        return came, must
    return tuple(  # type: ignore[return-value]
        ", ".join(f"{key} {json.dumps(row[key])}" for key in changed) for row in (is_row, was_row)
    )


def _signs() -> dict[Mark, str]:
    try:
        "".join(_SIGNS.values()).encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return _PLAIN_SIGNS
    return _SIGNS


def _distinct(texts: Iterable[str]) -> Sequence[str]:
    return [*dict.fromkeys(texts)]
