"""What docs/operations.md shows is what works."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tenure import Job, Tenure
from tenure.cli_worker import served, worker
from tests.clients import readme

TEXT = (readme.README.parent / "docs" / "operations.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"(?ms)^```{language}\n(.*?)^```$", TEXT)
    assert found is not None
    return found.group(1)


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(block("ini"))
    return parser


def check_worker(command: list[str]) -> dict[str, Any]:
    """The options, which the command line accepts."""
    assert Path(command[0]).name == "tenure"
    assert command[1] == "worker"
    context = worker.make_context("worker", command[2:])
    assert served(context.params["queues"]) == {"mail": 4, "default": 2}
    return context.params


def test_the_unit_gives_a_stop_more_time_than_the_worker_takes() -> None:
    service = unit()["Service"]

    options = check_worker(shlex.split(service["ExecStart"]))

    assert service["Type"] == "notify"
    assert options["grace"].total_seconds() < float(service["TimeoutStopSec"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    here = block("ini").replace("/srv/shop/.venv/bin/tenure", sys.executable)
    (tmp_path / "shop.service").write_text(here.replace("User=shop", "User=root"))

    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "shop.service")],
        capture_output=True,
        text=True,
        timeout=50,
    )

    assert [line for line in checked.stderr.splitlines() if "shop.service" in line] == []


def test_the_container_runs_the_worker_as_its_first_process_and_leaves_it_time() -> None:
    [command] = re.findall(r"(?m)^CMD (.*)$", block("dockerfile"))

    options = check_worker(json.loads(command))

    assert options["grace"].total_seconds() < 10


def test_the_queries_run(fresh_dsn: str) -> None:
    with psycopg.connect(fresh_dsn, autocommit=True) as connection:
        connection.execute("select tenure.enqueue('mail', 'welcome')")
        queries = [query for query in block("sql").split(";") if query.strip()]
        answers = [connection.execute(query.encode()).fetchall() for query in queries]
        connection.execute("update tenure.install set notify = false")
        connection.execute("select tenure.maintain()")

    assert len(answers) == 6
    assert answers[0][0][:4] == ("mail", 1, 0, 0)


def test_the_hooks_that_are_shown_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(block("python"), "operations.md", "exec"), names)
    app: Tenure = names["app"]

    @app.task
    def work(job: Job) -> None: ...

    app.install()
    app.enqueue(work)
    app.worker().run_until_idle()
    app.close()

    assert names["ended"] == {("completed", "work"): 1}
