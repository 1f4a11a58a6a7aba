"""`tenure verify` passes wherever tenure is as it should be."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable

import psycopg
import pytest
from psycopg import sql

from tenure.verify import run, script
from tenure.verify.cells import LAPSE, Mark, Matrix
from tenure.verify.hindrances import POOLED
from tenure.verify.owner import OWNER
from tests.cli.conftest import Tenure
from tests.tools.pooler import find_pgbouncer, pgbouncer
from tests.verify.conftest import live_jobs, schemas


def test_a_scratch_schema_passes_and_is_gone_afterwards(
    bare_tenure: Tenure, empty_database: Callable[[str], str]
) -> None:
    dsn = empty_database("verify")

    ran = bare_tenure("verify", "--dsn", dsn, "--only", "stale")

    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[-1] == "357 cells: 357 pass, 0 fail, 0 not possible here"
    assert "complete            ✓  ✓  ✓  ✓  ✓  ✓" in lines
    assert "c  swept, and claimed again under the same worker_id" in lines
    assert schemas(dsn) == []


def test_an_install_passes_with_no_more_rights_than_its_users_have(
    bare_tenure: Tenure, install: str, role: Callable[..., str]
) -> None:
    at = ["verify", "--dsn", role("produce", "work", "operate"), "--schema", "tenure", "--json"]

    for part, cells in {"wake": 66, "race": 74}.items():  # the others: test_broken.py
        ran = bare_tenure(*at, "--only", part)

        counts = {"cells": cells, "passed": cells, "failed": 0, "not_possible": 0}
        assert ran.json["counts"] == counts
        assert not ran.json["rows_compared"]
        stays = rf"\d+ finished jobs stay in queues (verify-\w{{8}})-1 to \1-{cells} of tenure,.*"
        assert re.fullmatch(stays, ran.json["left"])
    assert live_jobs(install) == 0


def test_an_owner_leaves_nothing_behind_in_an_install(bare_tenure: Tenure, install: str) -> None:
    before = _rows(install)

    ran = bare_tenure("verify", "--dsn", install, "--schema", "tenure", "--only", "wake")

    assert ran.code == 0
    assert " stay " not in ran.out
    assert _rows(install) == before


def _rows(dsn: str) -> list[int]:
    """How many there are in each table."""
    with psycopg.connect(dsn) as connection:
        return [
            connection.execute(
                sql.SQL("select from {}").format(sql.Identifier("tenure", table))
            ).rowcount
            for table in ("job", "job_history", "attempt", "queue", "worker")
        ]


def test_a_sweep_by_a_worker_of_the_install_fails_no_cell(
    install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, undisturbed = "lapsed, and nobody took it over", script.Script.play
    cells = [cell for cell in OWNER.cells() if cell.column == state and cell.row != "sweep"]
    swept: list[object] = []

    def play(played: script.Script, number: int) -> None:
        if number == cells[0].lines.index(LAPSE) + 1 and not swept:
            swept.extend(rival.execute("select * from tenure.sweep('a worker')").fetchall())
        undisturbed(played, number)

    monkeypatch.setattr(script.Script, "play", play)
    monkeypatch.setattr(run, "OWNER", Matrix(name="owner", title="", cells=lambda: cells))
    monkeypatch.setattr(run, "STALE", Matrix(name="stale", title="", cells=list))
    with psycopg.connect(install, autocommit=True) as rival:
        report = run.verify(install, schema="tenure", part="stale")

    assert len(swept) == len(cells)
    assert {result.mark for result in report.results["owner"]} == {Mark.PASS}


def test_through_a_transaction_pooler_only_listening_is_not_possible(
    bare_tenure: Tenure, install: str
) -> None:
    program = find_pgbouncer()
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("pgbouncer is missing: .ci/run installs it with apt-get")
        pytest.skip("pgbouncer is not installed: apt-get install pgbouncer")
    dbname = psycopg.conninfo.conninfo_to_dict(install)["dbname"]
    with pgbouncer(program, str(dbname)) as dsn:
        at = ["verify", "--dsn", dsn, "--schema", "tenure", "--only"]
        race = bare_tenure(*at, "race", "--json")
        wake = bare_tenure(*at, "wake")
        strict = bare_tenure(*at, "wake", "--strict", "--json")

    assert Counter(cell["mark"] for cell in race.json["results"]["race"]) == {"pass": 74}
    assert wake.code == 0
    assert f"66 cells not possible here: {POOLED}" in wake.out.splitlines()
    assert wake.out.splitlines()[-1] == "66 cells: 0 pass, 0 fail, 66 not possible here"
    assert strict.code == 1


def test_workers_that_sleep_on_all_queues_hide_only_who_must_not_be_notified(
    bare_tenure: Tenure, install: str
) -> None:
    many = [f"queue {number}" for number in range(33)]
    with psycopg.connect(install, autocommit=True) as worker:
        worker.execute("select tenure.sleep_begin(%s)", [many])

        ran = bare_tenure("verify", "--dsn", install, "--schema", "tenure", "--only", "wake")

    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "66 cells: 22 pass, 0 fail, 44 not possible here"
    assert "a worker of this install sleeps on all queues" in ran.out


def test_switched_off_notifications_are_told_from_lost_ones(
    bare_tenure: Tenure, install: str
) -> None:
    with psycopg.connect(install, autocommit=True) as owner:
        owner.execute("update tenure.install set notify = false")
        try:
            ran = bare_tenure("verify", "--dsn", install, "--schema", "tenure", "--only", "wake")
        finally:
            owner.execute("update tenure.install set notify = true")

    assert ran.code == 0
    assert "update tenure.install set notify = true" in ran.out
