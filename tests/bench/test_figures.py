"""The arithmetic of the benchmark, and the line that it ends with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from tests.bench import basic, catalogue, quick
from tests.bench.environments import CannotBeInstalled
from tests.bench.figures import Figure, Results, number, quantile, rows

RATE = Figure("drain 1", "drain")
WAIT = Figure("wait", "wait", "ms", quantile(0.5), more_is_better=False)


@pytest.fixture
def results() -> Results:
    about = {"version": "1", "settings": "its own"}
    names = ("tenure", "pgmq", "graphile-worker", "bare table")
    made = Results(about=dict.fromkeys(names, about), shown=["bare table"])
    made.add("drain 1", "tenure", 30_000, 10_000, 20_000)
    made.add("drain 1", "pgmq", 9_000, 8_000, 40_000)
    made.add("drain 1", "graphile-worker", 16_000)
    made.add("drain 1", "bare table", 90_000)
    made.add("wait", "tenure", 1, 2, 9)
    made.add("wait", "pgmq", 4)
    made.add("wait", "graphile-worker", 5)
    return made


def test_the_best_peer_is_the_one_with_the_best_median(results: Results) -> None:
    assert results.best_peer(RATE) == ("graphile-worker", 16_000)
    assert results.best_peer(WAIT) == ("pgmq", 4)


def test_a_ratio_is_of_medians_and_leaves_the_ceiling_out(results: Results) -> None:
    assert results.ratio(RATE) == 20_000 / 16_000
    assert results.ratio(WAIT) == 2 / 4


def test_without_a_peer_there_is_no_ratio(results: Results) -> None:
    assert Results(about={"tenure": {}}, samples={"drain 1": {"tenure": [1]}}).ratio(RATE) is None
    assert results.ratio(Figure("nothing", "nothing")) is None


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.99, 99), (0.001, 1), (1, 100)], ids=str)
def test_a_quantile_is_a_sample(share: float, value: float) -> None:
    assert quantile(share)([float(n) for n in range(100, 0, -1)]) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1234, "0.12"), (99.96, "100"), (9.996, "10.0"), (999.6, "1.00k"), (37_512, "37.5k")],
)
def test_a_number_has_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_a_table_shows_how_far_the_samples_spread(results: Results) -> None:
    head, rate, wait = rows(results, [RATE, Figure("none", "none"), WAIT])

    assert head[1] == "tenure"
    assert rate[:3] == ["drain, jobs/s", "20.0k (10.0k..30.0k)", "9.00k (8.00k..40.0k)"]
    assert rate[-1] == "1.25 (graphile-worker)"
    assert wait[1:] == ["2.00", "4.00", "5.00", "-", "0.50 (pgmq)"]


def test_results_are_the_same_after_they_were_stored(results: Results, tmp_path: Path) -> None:
    results.save(tmp_path / "deep" / "results.json")

    assert Results.load(tmp_path / "deep" / "results.json") == results


def test_the_last_line_is_the_drain_ratio(
    results: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    assert quick.ended(results) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "drain ratio: 1.25"


def test_a_run_without_the_fastest_peers_fails(
    results: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    of = results.samples[basic.DRAIN.key]
    of["pgqueuer"] = of.pop("pgmq")
    del of["graphile-worker"]
    results.about["pgqueuer"] = results.about["pgmq"]

    assert quick.ended(results) == 1
    assert "drain ratio:" not in capsys.readouterr().out


def test_where_the_fastest_peers_cannot_be_installed_nothing_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused() -> catalogue.Installed:
        raise CannotBeInstalled("no such package")

    missing = [
        replace(peer, install=refused) if peer.name in quick.BEST else peer
        for peer in (catalogue.TENURE, catalogue.GRAPHILE, catalogue.PGMQ)
    ]
    monkeypatch.setattr(catalogue, "QUICK", missing)
    monkeypatch.setattr("sys.argv", ["quick"])

    assert quick.main() == 1
    out, err = capsys.readouterr()
    assert "pgmq does not take part: no such package" in out
    assert err == "neither of graphile-worker and pgmq could be installed\n"


def test_rates_are_reduced_to_medians() -> None:
    assert basic.DRAIN.reduce is median
