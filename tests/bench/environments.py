"""An environment of its own for each peer, below .bench/ and after its lock file."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.adapter import ROOT

PLACE = ROOT / ".bench"
LOCKS = ROOT / "tests" / "bench" / "peers" / "locks"
NODE = "node"
"""The lock of Node itself: what a machine has may be too old, and then npm takes old peers."""


class CannotBeInstalled(Exception):
    """No environment for a peer, and why."""


def python_environment(name: str, *, oldest: tuple[int, int] = (3, 11)) -> Path:
    """The interpreter of a virtual environment with what the peer's lock file says."""
    lock = LOCKS / f"{name}.lock"
    interpreter = _interpreter(oldest)
    place = PLACE / "environments" / f"{name}-{_digest(lock)}"
    python = place / "bin" / "python"
    if not (place / "complete").exists():
        shutil.rmtree(place, ignore_errors=True)
        _run([interpreter, "-m", "venv", str(place)])
        _run([str(python), "-m", "pip", "install", "-q", "--require-hashes", "-r", str(lock)])
        (place / "complete").touch()
    return python


def node_environment(name: str) -> tuple[Path, Path]:
    """Node, and a folder whose node_modules has what the peer's lock file says."""
    node = python_environment(NODE).parent
    source = LOCKS / name
    place = PLACE / "environments" / f"{name}-{_digest(source / 'package-lock.json')}"
    if not (place / "complete").exists():
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(source, place)
        npm = [str(node / "npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        _run(npm, cwd=place, path=node)
        (place / "complete").touch()
    return node / "node", place


def _interpreter(oldest: tuple[int, int]) -> str:
    """The running Python if it is new enough, else the first that is found."""
    if sys.version_info[:2] >= oldest:
        return sys.executable
    for minor in range(oldest[1] + 3, oldest[1] - 1, -1):
        name = f"python{oldest[0]}.{minor}"
        for place in _places():
            # What is on the PATH may be a mere pointer to an interpreter that is not there.
            if (place / name).exists() and _works(found := str(place / name)):
                return found
    raise CannotBeInstalled(f"needs Python {oldest[0]}.{oldest[1]} or newer")


def _places() -> list[Path]:
    home = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    return [
        *(Path(place) for place in os.environ.get("PATH", "").split(os.pathsep)),
        *sorted(home.glob("*/bin"), reverse=True),
    ]


def _works(python: str) -> bool:
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def _digest(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes()).hexdigest()[:12]


def _run(command: Sequence[str], *, cwd: Path = ROOT, path: Path | None = None) -> None:
    environment = dict(os.environ)
    if path is not None:
        environment["PATH"] = f"{path}{os.pathsep}{environment['PATH']}"
    try:
        subprocess.run(
            command, cwd=cwd, env=environment, check=True, capture_output=True, text=True
        )
    except FileNotFoundError as error:
        raise CannotBeInstalled(str(error)) from error
    except subprocess.CalledProcessError as error:
        lines = f"{error.stdout}\n{error.stderr}".strip().splitlines()
        raise CannotBeInstalled(lines[-1] if lines else str(error)) from error
