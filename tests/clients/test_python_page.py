"""The examples of docs/python.md, each run word for word as a program of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.clients import readme

PAGE = readme.README.parent / "docs" / "python.md"
EXAMPLES = re.findall(
    r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```\n+^```\n(.*?)^```",
    PAGE.read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)


def test_every_section_has_an_example() -> None:
    headings = re.findall(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [title for title, _, _ in EXAMPLES] == headings


@pytest.mark.parametrize(("title", "code", "output"), EXAMPLES, ids=[e[0] for e in EXAMPLES])
def test_the_example_prints_what_the_page_says(
    fresh_dsn: str, tmp_path: Path, title: str, code: str, output: str
) -> None:
    with psycopg.connect(fresh_dsn) as connection:
        connection.execute("create table orders (id int)")
        connection.execute("create table receipts (order_id int, amount int)")
    program = tmp_path / "example.py"
    program.write_text(
        code.replace(
            "postgresql+psycopg://user@host/database", f"postgresql+psycopg{_rest(fresh_dsn)}"
        ).replace("postgresql://user@host/database", fresh_dsn),
        encoding="utf-8",
    )

    ran = subprocess.run(
        [sys.executable, "-W", "error", str(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == output


def _rest(dsn: str) -> str:
    return dsn.removeprefix("postgresql")
