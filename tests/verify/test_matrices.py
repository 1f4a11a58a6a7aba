"""The matrices themselves: complete, and in step with the functions and the docs."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tenure.install import install_script
from tenure.verify.cells import Cell
from tenure.verify.promises import PROMISES
from tenure.verify.run import PARTS, matrices
from tenure.verify.session import literal, rendered
from tenure.verify.stale import OWNERS_WAYS, WAYS
from tenure.verify.words import VERBS

DOCS = Path(__file__).resolve().parents[2] / "docs"


def all_cells() -> list[Cell]:
    return [cell for matrix in matrices(None, scratch=True) for cell in matrix.cells()]


def test_no_two_cells_have_one_place() -> None:
    places = Counter((cell.matrix, cell.row, cell.column) for cell in all_cells())
    assert {place for place, times in places.items() if times > 1} == set()


def test_every_verb_is_called_after_every_way_of_losing_the_lease() -> None:
    stale = {(cell.row, cell.column) for cell in all_cells() if cell.matrix == "stale"}
    assert stale == {(verb, way) for verb in VERBS for way in WAYS | OWNERS_WAYS}


def test_every_worker_verb_of_the_install_that_shows_a_token_is_in_the_matrices() -> None:
    shows_a_token = set(
        re.findall(r"create or replace function (\w+)\((?=[^)]*p_tokens?\b)", install_script())
    )
    internal = {"check_lease_args", "check_leases", "settle_jobs", "stale_verdict"}
    called = {name for sql in VERBS.values() for name in re.findall(r"@(\w+)\(", sql)}
    assert shows_a_token - internal == called


def test_the_promises_are_those_of_the_page() -> None:
    page = " ".join((DOCS / "guarantees.md").read_text(encoding="utf-8").replace("*", "").split())
    for promise in PROMISES.values():
        assert promise in page
    assert {cell.promise for cell in all_cells()} == set(PROMISES)


def test_the_parts_together_are_the_whole() -> None:
    parts = [name for part in PARTS for name in (m.name for m in matrices(part, scratch=True))]
    assert parts == [matrix.name for matrix in matrices(None, scratch=True)]


def test_the_page_says_how_many_cells_there_are() -> None:
    page = (DOCS / "verify.md").read_text(encoding="utf-8")
    counts = Counter(cell.matrix for cell in all_cells())
    for name, count in counts.items():
        assert re.search(rf"^\| `{name}` \| {count} \|", page, re.MULTILINE)
    assert f"{counts.total()} cells: {counts.total()} pass" in page


@pytest.mark.parametrize(
    ("value", "written"),
    [("17", "17"), ("-1", "-1"), ("o'clock", "'o''clock'"), (None, "null"), ("", "''")],
)
def test_values_are_written_as_literals(value: str | None, written: str) -> None:
    assert literal(value) == written


def test_statements_name_the_schema_and_keep_casts_and_texts() -> None:
    sql = 'select @held(:me), array[:job]::bigint[], \'{"at": 1}\'; listen :"channel"'
    filled = rendered(sql, "my jobs", {"me": "ada", "job": "7", "channel": "Ch"})
    assert filled == (
        'select "my jobs".held(\'ada\'), array[7]::bigint[], \'{"at": 1}\'; listen "Ch"'
    )
