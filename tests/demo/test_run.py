"""The demo from beginning to end, in a reduced form."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.cli import run
from tenure.demo.__main__ import SCHEMA, demo
from tenure.demo.crew import Crew, NotAsArranged
from tenure.store import open_store

FILES = 40
pytestmark = pytest.mark.timeout(180)


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"])
def test_every_figure_is_as_promised(
    backend: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = str(
        tmp_path / "demo.db" if backend == "sqlite" else request.getfixturevalue("fresh_dsn")
    )
    code = run(demo, ["--dsn", target, "--files", str(FILES)], "tenure.demo")
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert ("SQLite" if backend == "sqlite" else f"in the schema {SCHEMA}") in out.splitlines()[0]

    figures = re.findall(r"^(\w[\w ]+?) {2,}(\d+)$", out, re.MULTILINE)
    shown = {name: int(figure) for name, figure in figures}
    assert shown["enqueued"] == FILES
    assert shown["completed"] == FILES - 2
    assert shown["cancelled"] == 2
    assert shown["leases recovered"] >= 2
    assert shown["sealed jobs healed without running again"] >= 1
    assert shown["completions accepted twice"] == 0
    assert shown["stale writes refused"] >= 1
    assert "the 10 largest modules" in out

    store = open_store(target, schema=SCHEMA)
    jobs = store.records().jobs(limit=1_000)
    attempts = [a for job in jobs for a in store.records().attempts(job.job_id)]
    store.close()
    assert sorted(job.status for job in jobs) == ["cancelled"] * 2 + ["completed"] * (FILES - 2)
    [decoder] = [job for job in jobs if job.payload["module"] == "json.decoder"]
    assert decoder.attempt == 1
    assert decoder.result["lines"] == len(Path(decoder.payload["path"]).read_bytes().splitlines())
    assert [a.outcome for a in attempts if a.job_id == decoder.job_id] == ["healed"]
    assert sum(a.verb == "sweep" for a in attempts) == shown["leases recovered"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are read from /proc")
def test_an_interrupted_demo_leaves_no_process_and_no_file(
    tmp_path: Path, number: signal.Signals
) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tenure.demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"},
        # A shell that runs the tests in the background has them ignore SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        queue = process.stdout.readline().split()[-1]
        assert process.stdout.readline().startswith("enqueued")
        assert len(_processes_with(queue)) == 2
        process.send_signal(number)
        _, err = process.communicate()
    assert (process.returncode, err.strip()) == (128 + number, "")
    assert _processes_with(queue) == []
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_ends_by_itself_ends_the_demo(tmp_path: Path) -> None:
    with Crew(tmp_path, str(tmp_path / "absent" / "demo.db"), SCHEMA, "demo") as crew:
        crew.hire()
        with pytest.raises(NotAsArranged, match=r"worker 1 ended by itself: .*absent"):
            crew.until(lambda: False, "anything")


def test_what_does_not_come_is_named(tmp_path: Path) -> None:
    with (
        Crew(tmp_path, "", SCHEMA, "demo") as crew,
        pytest.raises(NotAsArranged, match="after 0 s there is no sign that pigs fly"),
    ):
        crew.until(lambda: False, "pigs fly", seconds=0)


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["--dsn", "x.db", "--embedded"], 2, "exclude each other"),
        (["--files", "3"], 2, "--files"),
        (["--dsn", "mysql://x"], 1, "the target begins with 'mysql://'"),
        (["--dsn", "host=/nowhere dbname=x"], 1, "cannot connect"),
    ],
)
def test_what_cannot_begin_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, complaint: str
) -> None:
    assert run(demo, arguments, "tenure.demo") == code
    _, err = capsys.readouterr()
    assert complaint in err
    assert err.count("\n") == 1


def _processes_with(word: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes()
        except OSError:  # it has ended
            continue
        if word.encode() in command.split(b"\0"):
            found.append(entry.parent.name)
    return found
