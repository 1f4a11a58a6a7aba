"""Writes docs/benchmarks.md from what was measured: python -m tests.bench.page."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench import goals
from tests.bench.adapter import ROOT
from tests.bench.environments import PLACE, CannotBeInstalled, python_environment
from tests.bench.figures import Results, rows
from tests.bench.run import Sizes, measures

RESULTS = PLACE / "results"
DOCS = ROOT / "docs"
TEMPLATE = Path(__file__).with_name("benchmarks.md")


def written(template: str, measured: Mapping[str, Results]) -> str:
    """The page: each {{name}} of the template is a table, or says that there is none yet."""
    page = template
    for measure in measures(Sizes()):
        results = measured.get(measure.name)
        table = _markdown(rows(results, measure.figures)) if results else "Not measured yet."
        page = page.replace(f"{{{{{measure.name}}}}}", table)
    page = page.replace("{{goals}}", _markdown(goals.rows(measured)))
    page = page.replace("{{machine}}", _markdown(_machines(measured)))
    return page.replace("{{settings}}", _markdown(_settings(measured)))


def _machines(measured: Mapping[str, Results]) -> list[list[str]]:
    """What each measure ran on; a line for each thing, and one column where all agree."""
    names = list(measured)
    told = [results.machine for results in measured.values()]
    things = dict.fromkeys(thing for machine in told for thing in machine)
    table = [["", *names]]
    for thing in things:
        values = [machine.get(thing, "") for machine in told]
        same = ["the same"] * (len(values) - 1)
        table.append([thing, *(values if len(set(values)) > 1 else [values[0], *same])])
    return table


def _settings(measured: Mapping[str, Results]) -> list[list[str]]:
    about: dict[str, tuple[str, str]] = {}
    for results in measured.values():
        for who, said in results.about.items():
            about.setdefault(who, (said["version"], said["settings"]))
    for results in measured.values():
        for who, why in results.absent.items():
            about.setdefault(who, ("-", f"could not be installed: {why}"))
    return [["", "version", "settings"], *([who, *said] for who, said in about.items())]


def _markdown(table: Sequence[Sequence[str]]) -> str:
    head, *lines = ["| " + " | ".join(line) + " |" for line in table]
    return "\n".join([head, "|" + "---|" * len(table[0]), *lines])


def main() -> int:
    measured = {
        measure.name: Results.load(path)
        for measure in measures(Sizes())
        if (path := RESULTS / f"{measure.name}.json").exists()
    }
    if not measured:
        print("nothing was measured yet: make bench", file=sys.stderr)
        return 1
    (DOCS / "benchmarks.md").write_text(written(TEMPLATE.read_text(), measured))
    try:
        python = python_environment("plots")
    except CannotBeInstalled as reason:
        print(f"no plots: {reason}", file=sys.stderr)
        return 1
    command = [str(python), "-m", "tests.bench.plots", str(RESULTS), str(DOCS / "benchmarks")]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
