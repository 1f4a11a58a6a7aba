"""Builds the package, installs the wheel in a clean environment, migrates and verifies with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tenure import embedded

REPOSITORY = Path(__file__).resolve().parents[2]

# Where the folders of the repository lie in the wheel.
PLACES = {"py/tenure": "tenure", "sql": "tenure/_sql", "migrations": "tenure/_migrations"}

MIGRATE = """
import sys
from pathlib import Path
import tenure
from tenure.migrate import downgrade, upgrade
assert Path(tenure.__file__).is_relative_to(Path(sys.prefix)), tenure.__file__
downgrade(sys.argv[1], revision="base")
print(upgrade(sys.argv[1]))
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        wheel = _build(REPOSITORY, place / "dist", "wheel")
        _compare(wheel)
        _compare_with_sdist(wheel, place)
        with embedded.temporary() as server:
            _migrate(_installed(wheel, place / "venv"), server.url(), place)


def _build(source: Path, target: Path, kind: str) -> Path:
    """Build a 'wheel' or an 'sdist' and return its path."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", target],
        cwd=source,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    [built] = target.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def _compare(wheel: Path) -> None:
    """Stop unless the wheel holds exactly the repository's files, and its own metadata."""
    found = {name for name in _names(wheel) if not name.split("/")[0].endswith(".dist-info")}
    if found != (wanted := set(_wanted())):
        sys.exit(f"missing: {sorted(wanted - found)}\nnot wanted: {sorted(found - wanted)}")


def _compare_with_sdist(wheel: Path, place: Path) -> None:
    """Stop unless the sdist makes the same wheel."""
    sdist = _build(REPOSITORY, place / "dist", "sdist")
    shutil.unpack_archive(sdist, place / "sdist")
    [source] = (place / "sdist").iterdir()
    again = _build(source, place / "again", "wheel")
    if _names(again) != _names(wheel):
        sys.exit(f"the sdist makes another wheel: {sorted(_names(again) ^ _names(wheel))}")


def _names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def _wanted() -> Iterator[str]:
    for source, target in PLACES.items():
        for file in (REPOSITORY / source).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                yield f"{target}/{file.relative_to(REPOSITORY / source).as_posix()}"


def _installed(wheel: Path, place: Path) -> Path:
    """Install the wheel in a new environment with what the lock names; return its bin/."""
    venv.create(place, with_pip=True)
    bindir, lock = place / "bin", REPOSITORY / "py/locks/demo.lock"
    pip = [f"{bindir}/python", "-m", "pip", "install", "-q"]
    subprocess.run([*pip, "--require-hashes", "-r", str(lock)], check=True)
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
    return bindir


def _migrate(bindir: Path, dsn: str, place: Path) -> None:
    foreign = ("PYTHON", "TENURE")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    for command in (
        [f"{bindir}/tenure", "migrate", "--dsn", dsn],
        [f"{bindir}/python", "-I", "-W", "error", "-c", MIGRATE, dsn],
        [f"{bindir}/tenure", "verify", "--dsn", dsn, "--only", "wake"],
    ):
        subprocess.run(command, check=True, cwd=place, env=environment, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
