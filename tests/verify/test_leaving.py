"""`tenure verify` removes what it made, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import psycopg
import pytest
from psycopg import sql

from tenure.verify import run
from tenure.verify.cells import Cell, Line, Matrix
from tenure.verify.dismantle import dismantle
from tenure.verify.promises import ONE_OWNER
from tenure.verify.session import Answer, Session
from tenure.verify.stage import Stage
from tenure.verify.words import ENQUEUE, leased, verb
from tests.cli.conftest import Tenure
from tests.verify.conftest import live_jobs, schemas


def test_an_interrupt_ends_it_without_its_schema(empty_database: Callable[[str], str]) -> None:
    dsn = empty_database("verify")
    # A process that was started in the background of a shell ignores SIGINT.
    restored = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{restored}; from tenure.cli import main; raise SystemExit(main())"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TENURE_")}
    with subprocess.Popen(
        [sys.executable, "-c", program, "verify", "--dsn", dsn],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        _wait_for_jobs(dsn)
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=50)

    assert (process.returncode, complaint.strip()) == (130, "")
    assert schemas(dsn) == []


@pytest.mark.parametrize("verb_under_way", [".enqueue(", ".claim_job("])
def test_a_termination_ends_it_without_a_live_job(
    verb_under_way: str, bare_tenure: Tenure, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dismantled, before = [], signal.getsignal(signal.SIGTERM)

    def impatiently(stage: Stage) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        dismantled.append(stage.name)
        return dismantle(stage)

    def asked(session: Session, statement: str) -> Answer:
        answer = ask(session, statement)
        if verb_under_way in statement:
            os.kill(os.getpid(), signal.SIGTERM)
        return answer

    ask = Session.ask
    _playing(monkeypatch, ENQUEUE, ENQUEUE, leased(), verb("complete", "ok"))
    monkeypatch.setattr(Session, "ask", asked)
    monkeypatch.setattr(run, "dismantle", impatiently)
    with pytest.raises(SystemExit) as stopped:
        bare_tenure("verify", "--dsn", install, "--schema", "tenure", "--only", "race")

    assert stopped.value.code == 143
    assert len(dismantled) == 1
    assert live_jobs(install) == 0
    assert signal.getsignal(signal.SIGTERM) == before


def _wait_for_jobs(dsn: str) -> None:
    """Return once a scratch schema has a job; fail when none ever has."""
    deadline = time.monotonic() + 40
    with psycopg.connect(dsn, autocommit=True) as connection:
        while time.monotonic() < deadline:
            for schema in schemas(dsn):
                jobs = sql.SQL("select 1 from {} limit 1").format(sql.Identifier(schema, "job"))
                if connection.execute(jobs).fetchone():
                    return
            time.sleep(0.02)
    pytest.fail("it never made a job")


def _playing(monkeypatch: pytest.MonkeyPatch, *lines: Line) -> None:
    cell = Cell(matrix="race", row="", column="", lines=lines, promise=ONE_OWNER)
    matrix = Matrix(name="race", title="", cells=lambda: [cell])
    monkeypatch.setattr(run, "RACE_MATRIX", matrix)


def test_a_lost_connection_ends_it_without_its_schema(
    bare_tenure: Tenure, empty_database: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = empty_database("verify")
    _playing(monkeypatch, ENQUEUE, Line("select pg_terminate_backend(pg_backend_pid())"))

    ran = bare_tenure("verify", "--dsn", dsn, "--only", "race")

    assert ran.code == 2
    assert ran.complaint.startswith("tenure: the database refuses: terminating connection")
    assert schemas(dsn) == []


def test_a_lost_connection_leaves_no_live_job_in_an_install(
    bare_tenure: Tenure, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _playing(monkeypatch, ENQUEUE, leased(), Line("select pg_terminate_backend(pg_backend_pid())"))

    ran = bare_tenure("verify", "--dsn", install, "--schema", "tenure", "--only", "race")

    assert ran.code == 2
    assert live_jobs(install) == 0
