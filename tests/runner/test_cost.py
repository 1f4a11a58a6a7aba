"""What a runner costs the server, counted there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bench.counted import Counter, counted
from tests.bench.drain import drain
from tests.bench.idle import idle


@pytest.fixture(scope="module")
def counting() -> Iterator[tuple[str, Counter]]:
    with counted() as server:
        yield server


def test_a_job_that_does_nothing_costs_few_statements_and_fewer_commits(
    counting: tuple[str, Counter], capsys: pytest.CaptureFixture[str]
) -> None:
    drained = drain(*counting, 5_000, slots=10)

    with capsys.disabled():
        print(f"\n{drained}")
    assert drained.statements <= 0.05
    assert drained.commits <= 0.03


def test_an_idle_runner_sends_little(
    counting: tuple[str, Counter], capsys: pytest.CaptureFixture[str]
) -> None:
    """Two minutes of it, twenty times as fast."""
    idled = idle(*counting, seconds=6, times=20)

    with capsys.disabled():
        print(f"\n{idled}")
    assert idled.statements <= 16
    assert idled.of_a_kind["polls"] <= 2
    assert idled.of_a_kind["proofs"] <= 4
    assert idled.of_a_kind["sweeps"] <= 7
    assert idled.of_a_kind.get("the rest", 0) <= 3
