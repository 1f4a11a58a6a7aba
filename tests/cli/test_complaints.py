"""What goes wrong before a command can begin is one line on standard error, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click
import psycopg
import pytest

from tenure import cli_read
from tenure.cli import commands
from tests.cli.conftest import Tenure

ON_A_STORE = [
    ["enqueue", "mail"],
    ["jobs"],
    ["show", "1"],
    ["queues"],
    ["cancel", "1"],
    ["retry", "1"],
    ["pause", "q"],
    ["resume", "q"],
    ["sweep"],
]


@pytest.mark.parametrize("command", [*ON_A_STORE, ["migrate"]], ids=lambda c: c[0])
class TestEveryCommand:
    def test_without_a_database_is_a_usage_error(
        self, bare_tenure: Tenure, command: list[str]
    ) -> None:
        ran = bare_tenure(*command)
        assert ran.code == 2
        assert "no database was named: pass --dsn or set TENURE_DSN" in ran.complaint

    @pytest.mark.parametrize(
        ("target", "complaint"),
        [
            ("jobs", "the target is none: 'jobs'"),
            ("mysql://localhost/x", "the target begins with 'mysql://'"),
            ("postgresql://[::1/x", "malformed DSN: "),
            ("host=db colour=blue", 'malformed DSN: invalid connection option "colour"'),
            ("sqlite://", "the target is none"),
        ],
    )
    def test_refuses_what_names_no_database(
        self, bare_tenure: Tenure, command: list[str], target: str, complaint: str
    ) -> None:
        ran = bare_tenure(*command, "--dsn", target)
        assert ran.code == 1
        assert ran.complaint.startswith(f"tenure: {complaint}")

    def test_says_that_the_server_is_down(
        self, bare_tenure: Tenure, command: list[str], tmp_path: Path
    ) -> None:
        ran = bare_tenure(*command, "--dsn", f"host={tmp_path} dbname=x")
        assert ran.code == 1
        assert ran.complaint.startswith("tenure: cannot connect: ")

    def test_refuses_a_file_that_is_no_database(
        self, bare_tenure: Tenure, command: list[str], tmp_path: Path
    ) -> None:
        path = tmp_path / "prose.db"
        path.write_text("It was a dark and stormy night; the rain fell in torrents. " * 20)
        ran = bare_tenure(*command, "--dsn", path)
        assert ran.code == 1
        assert ran.complaint.startswith(f"tenure: {path} is not a SQLite database")


@pytest.mark.parametrize("command", ON_A_STORE, ids=lambda c: c[0])
class TestEveryCommandButMigrate:
    def test_makes_no_file(self, bare_tenure: Tenure, command: list[str], tmp_path: Path) -> None:
        path = tmp_path / "typo.db"
        ran = bare_tenure(*command, "--dsn", path)
        assert ran.code == 1
        assert ran.complaint == f"tenure: there is no file {path} (run: tenure migrate)"
        assert not path.exists()


def test_a_usage_error_names_the_help(bare_tenure: Tenure) -> None:
    ran = bare_tenure("jobs", "--colour")
    assert ran.code == 2
    assert ran.complaint.endswith("(see: tenure jobs --help)")
    ran = bare_tenure("job")
    assert ran.code == 2
    assert ran.complaint.startswith("tenure: No such command 'job'")


def test_no_command_shows_the_help(bare_tenure: Tenure) -> None:
    ran = bare_tenure()
    assert (ran.code, ran.err) == (0, "")
    assert "enqueue" in ran.out


def test_every_command_explains_itself() -> None:
    for name, command in commands.commands.items():
        assert command.help, name
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, (name, parameter.name)


def test_the_version_is_the_package_s(bare_tenure: Tenure) -> None:
    assert bare_tenure("--version").out == f"tenure, version {version('tenure')}\n"


def test_an_error_that_nobody_foresaw_is_one_line_unless_asked_otherwise(
    tenure: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("two\nlines \x1b[31m")

    monkeypatch.setattr(cli_read, "print_json", fail)
    ran = tenure("jobs", "--json")
    assert ran.code == 1
    assert ran.complaint.startswith("tenure: RuntimeError: two lines \\x1b[31m")

    monkeypatch.setenv("TENURE_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        tenure("jobs", "--json")


def test_what_the_server_refuses_is_one_line(
    tenure: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise psycopg.errors.InsufficientPrivilege("permission denied\nDETAIL:  none")

    monkeypatch.setattr(cli_read, "print_json", fail)
    ran = tenure("jobs", "--json")
    assert ran.code == 1
    assert ran.complaint == "tenure: the database refuses: permission denied DETAIL: none"


def test_ctrl_c_is_exit_code_130(tenure: Tenure, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_read, "print_json", interrupt)
    ran = tenure("jobs", "--json")
    assert (ran.code, ran.out.strip(), ran.err.strip()) == (130, "", "")


def test_python_m_tenure_is_the_same_command(file: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tenure", "show", "7"],
        env={**os.environ, "TENURE_DSN": str(file)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr.startswith("tenure: job 7 is unknown")
    assert ran.stderr.count("\n") == 1


def test_an_option_before_the_command_is_told_its_place(bare_tenure: Tenure) -> None:
    ran = bare_tenure("--dsn", "jobs.db", "jobs")
    assert ran.code == 2
    assert "--dsn goes after the command" in ran.complaint
