"""Every failure that other queues had, O01 to O48, is named by a test that would notice it here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
CASES = {f"O{number:02}" for number in range(1, 49)}


def named() -> dict[str, list[str]]:
    """The cases in the docstrings of tests and of their modules, and where."""
    found: dict[str, list[str]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        tests = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name.startswith("test_")
        ]
        assert tests, f"{file} has no test"
        if file != Path(__file__).resolve():
            for node in (tree, *tests):
                for case in re.findall(r"\bO\d\d\b", ast.get_docstring(node) or ""):
                    found.setdefault(case, []).append(file.name)
    return found


def test_every_case_is_named_by_a_test() -> None:
    found = named()

    assert CASES - found.keys() == set()
    assert found.keys() - CASES == set()
