"""The command line, run inside the test process on a file or a database of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tenure.cli import main
from tenure.store import OwnedControlPlane, open_store


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line on standard error of a command that failed."""
        assert self.code != 0
        assert self.err.count("\n") == 1
        assert self.err.endswith("\n")
        assert "Traceback" not in self.err
        return self.err.removesuffix("\n")


Tenure = Callable[..., Ran]


@pytest.fixture
def bare_tenure(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tenure:
    """Runs a command without telling it of a database."""
    for name in ("TENURE_DSN", "TENURE_SCHEMA", "TENURE_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with tenure's tables."""
    path = tmp_path / "jobs.db"
    store = open_store(str(path))
    store.install()
    store.close()
    return path


@pytest.fixture
def tenure(bare_tenure: Tenure, file: Path, monkeypatch: pytest.MonkeyPatch) -> Tenure:
    """Runs a command on `file`."""
    monkeypatch.setenv("TENURE_DSN", str(file))
    return bare_tenure


@pytest.fixture
def plane(file: Path) -> Iterator[OwnedControlPlane]:
    """A worker's side of `file`."""
    store = open_store(str(file))
    plane = store.control_plane()
    yield plane
    plane.close()
    store.close()
