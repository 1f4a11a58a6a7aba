"""A short soak on each backend; `make soak` runs the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.soak import Plan, soak

SHORT = {
    "postgres": Plan(
        backend="postgres", jobs=400, seconds=8, drain=30, seed=2, crashes=1, poison=1
    ),
    "sqlite": Plan(backend="sqlite", jobs=300, seconds=8, drain=30, seed=2, crashes=0, poison=1),
}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("backend", SHORT)
def test_every_promise_is_kept_while_runners_are_killed(backend: str, tmp_path: Path) -> None:
    report = soak(SHORT[backend], tmp_path)

    assert report.violations == []
    counts = report.figures
    assert counts["kills"] + counts["stops"] > 0
    assert counts["server crashes"] == SHORT[backend].crashes
    assert counts["  completed"] > SHORT[backend].jobs / 2
    assert counts["effects in job.transaction()"] > 0
    assert counts["leases lapsed"] > 0
