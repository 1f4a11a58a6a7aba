"""Runs tests against a mutant, in a process that is thrown away afterwards."""

from __future__ import annotations

import ast
import contextlib
import importlib
import math
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from tenure.install import choose_schema
from tests.mutants import sqlite_predicates
from tests.mutants.mutant import Kind, Mutant
from tests.tools import databases

LONGEST = 30
"""Seconds that one test may take; a loop that a mutant never leaves ends as a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What to run."""

    mutant: Mutant | None
    """None: tenure as it is."""
    kind: Kind
    tests: Sequence[str]
    """Folders, files and node ids; of a parametrized test with or without the case."""
    first: Sequence[str] = ()
    """Node ids, most promising first."""
    words: frozenset[str] = frozenset()
    """A test that has one of these in its source is more promising than one that has none."""
    leave_out: Set[str] = frozenset()
    """Files, and node ids of tests that fail anyway."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """What each test costs, where known: cheap ones go first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What came of it: all failures, or the first one if any test will do."""

    failed: tuple[str, ...]
    passed: Mapping[str, float]
    seconds: float
    trouble: str = ""
    """Why nothing is known."""


_words: dict[str, frozenset[str]] = {}
"""What stands in the source of each test, by its node id without the case."""


def import_tests(folders: Iterable[str]) -> None:
    """Read the tests, so that a fork need not. Leaves out what cannot be imported."""
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.py")):
            with contextlib.suppress(Exception):
                importlib.import_module(".".join(path.with_suffix("").parts))
                source = path.read_text("utf-8")
                for node in ast.parse(source).body:
                    if isinstance(node, ast.FunctionDef):
                        text = "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno])
                        _words[f"{path}::{node.name}"] = frozenset(re.findall(r"\w+", text))


def run(trial: Trial, template: str) -> Finding:
    """Run the tests over a clone of the template database."""
    watch = _Watch(trial)
    # Plain asserts: rewriting them takes longer than most trials, and nobody reads what they say.
    arguments = ["-q", "--assert=plain", "--continue-on-collection-errors", f"--timeout={LONGEST}"]
    if trial.mutant is not None and not trial.mutant.tests:
        arguments.append("-x")
    started = time.monotonic()
    with _applied(trial.mutant, template) as database, _own_folder() as folder:
        arguments.append(f"--basetemp={folder}/tests")
        os.environ["TENURE_TEST_TEMPLATE"] = database
        files = {test.partition("::")[0] for test in trial.tests}
        code = pytest.main([*arguments, *filter(os.path.exists, files)], plugins=[watch])
    return Finding(
        failed=tuple(watch.failed),
        passed=watch.passed,
        seconds=time.monotonic() - started,
        trouble="" if watch.failed or code == pytest.ExitCode.OK else f"pytest says {code!r}",
    )


class _Watch:
    """A pytest plugin that chooses the tests, puts them in order, notes how they end."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._rank = {test: rank for rank, test in enumerate(trial.first)}
        self.failed: list[str] = []
        self.passed: dict[str, float] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(filter(self._concerns, items), key=self._order)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)
        if report.when == "call" and report.passed:
            self.passed[report.nodeid] = report.duration

    def _concerns(self, item: pytest.Item) -> bool:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if parameters.get("backend", self._trial.kind) != self._trial.kind:
            return False
        if not self._trial.leave_out.isdisjoint((item.nodeid, item.nodeid.partition("::")[0])):
            return False
        return any(
            item.nodeid == test or item.nodeid.startswith((f"{test}[", f"{test}::", f"{test}/"))
            for test in self._trial.tests
        )

    def _order(self, item: pytest.Item) -> tuple[float, float]:
        cost = self._trial.seconds.get(item.nodeid, LONGEST)
        if item.nodeid in self._rank:
            return self._rank[item.nodeid], cost
        words = _words.get(item.nodeid.partition("[")[0], frozenset())
        return math.inf if words.isdisjoint(self._trial.words) else len(self._rank), cost


def _own_folder() -> TemporaryDirectory[str]:
    """In place of pytest's own: trials side by side would clear away each other's files."""
    return TemporaryDirectory(ignore_cleanup_errors=True)  # a process of a test may still write


@contextmanager
def _applied(mutant: Mutant | None, template: str) -> Iterator[str]:
    """The mutant in force; gives the name of the database that tests are to clone."""
    if mutant is not None and mutant.kind is Kind.POSTGRES:
        with databases.database(databases.new_name("mutant"), template=template) as name:
            with psycopg.connect(databases.url(name)) as connection:
                connection.execute(choose_schema("tenure").encode())
                connection.execute(mutant.source.encode())
            yield name
        return
    if mutant is not None and mutant.kind is Kind.SQLITE:
        sqlite_predicates.replace(mutant.place, mutant.source)
    yield template
