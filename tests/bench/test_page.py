"""The page of figures, and whether it says of a goal what the figures say."""

from __future__ import annotations

import re

import pytest

from tests.bench import basic, goals, scale
from tests.bench.figures import Results
from tests.bench.page import TEMPLATE, written
from tests.bench.run import Sizes, measures


def results(**samples: dict[str, list[float]]) -> Results:
    about = {"version": "1.2", "settings": "as they are"}
    return Results(
        about={
            "tenure": about | {"history": "kept"},
            "pgmq": about,
            "oban": about | {"history": ""},
        },
        samples=dict(samples),
    )


def row(measured: dict[str, Results], words: str) -> list[str]:
    [found] = [line for line in goals.rows(measured) if line[0].startswith(words)]
    return found


def test_the_template_has_a_place_for_each_measure() -> None:
    places = re.findall(r"{{(\w+)}}", TEMPLATE.read_text())

    assert sorted(places) == sorted(
        [*(measure.name for measure in measures(Sizes())), "goals", "machine", "settings"]
    )


def test_what_was_not_measured_is_not_invented() -> None:
    page = written(TEMPLATE.read_text(), {"ac": results(bulk={"tenure": [3e4], "pgmq": [2e4]})})

    assert "| a: bulk enqueue, jobs/s | 30.0k | 20.0k | - | 1.50 (pgmq) |" in page
    assert page.count("Not measured yet.") == len(list(measures(Sizes()))) - 1
    assert "{{" not in page


@pytest.mark.parametrize(("ours", "said"), [(2.4e4, "met"), (2.3e4, "**missed**")])
def test_a_goal_is_met_at_its_bound(ours: float, said: str) -> None:
    measured = {"ac": results(bulk={"tenure": [ours], "pgmq": [2e4]})}

    assert row(measured, "a:")[1:2] + row(measured, "a:")[3:] == ["at least 1.2", said]
    assert row(measured, f"{basic.DRAIN.words}, to")[3] == "not measured"


def test_costs_are_compared_with_those_who_keep_history() -> None:
    measured = {"g": results(**{"g wal": {"tenure": [9e2], "pgmq": [5e2], "oban": [1e3]}})}

    assert row(measured, "g: WAL")[2:] == ["0.90", "met"]


def test_a_fall_is_from_the_best_so_far() -> None:
    drains = {1: 100.0, 2: 200.0, 4: 190.0, 8: 150.0}
    assert tuple(drains) == scale.PROCESSES
    measured = {"h": results(**{f"h {n}": {"tenure": [drains[n]]} for n in drains})}

    assert row(measured, "h:")[2:] == ["0.75", "**missed**"]
