"""Runs spin, the compiler and pan."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.spin import report, trace
from tests.spin.report import Report
from tests.spin.specification import Size, Specification, Variant

PACKAGES = ("spin", "gcc", "libc6-dev")
MISSING = f"model checking needs spin and gcc: sudo apt-get install {' '.join(PACKAGES)}"

NULL = subprocess.DEVNULL

MEGABYTES = 900
"""Of memory for one search; two run side by side."""


class NotChecked(Exception):
    """A tool failed, so nothing is known."""


def installed() -> bool:
    return bool(shutil.which("spin") and shutil.which("gcc"))


def install() -> bool:
    """Install what is missing, as root where there is apt-get; whether all is there now."""
    if not installed() and os.geteuid() == 0 and shutil.which("apt-get"):
        print("spin or gcc is missing: installing", *PACKAGES, flush=True)
        apt = ("apt-get", "-qq", "-o", "Dpkg::Use-Pty=0")
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (("update",), ("install", "-y", "--no-install-recommends", *PACKAGES)):
            subprocess.run([*apt, *command], env=quiet, stdout=NULL, stderr=NULL, check=False)
    return installed()


def check(specification: Specification, size: Size) -> Report:
    """Search all states of a size."""
    with _folder(specification) as folder:
        return _search(folder, specification, size.defines, _options(size.liveness, "-O2"))


def break_(specification: Specification, variant: Variant) -> tuple[Report, str]:
    """Search the states of a variant for a shortest counterexample: the report, the trace."""
    defines = f"{specification.small} {variant.defines} -D{variant.name}"
    # Breadth first finds a shortest one, but no cycles.
    options = _options(variant.liveness, "-O0" if variant.liveness else "-O0 -DBFS")
    with _folder(specification) as folder:
        found = _search(folder, specification, defines, options)
        if not found.errors:
            return found, ""
        replayed = _run(folder, f"spin {defines} -t -B -T {specification.file}")
    return found, trace.readable(specification, variant, replayed)


def _options(liveness: bool, options: str) -> str:
    # Weak fairness counts the processes, with three bits more than the usual eight have.
    return f"{options} -DNFAIR=3" if liveness else f"{options} -DSAFETY -DNOCLAIM"


@contextmanager
def _folder(specification: Specification) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tenure-spin-") as name:
        folder = Path(name)
        shutil.copy(specification.path, folder)
        yield folder


def _search(folder: Path, specification: Specification, defines: str, options: str) -> Report:
    _run(folder, f"spin {defines} -a {specification.file}")
    _run(folder, f"gcc -w {options} -DMEMLIM={MEGABYTES} -o pan pan.c")
    turns = "" if "-DSAFETY" in options else "-a -f"
    return report.read(_run(folder, f"./pan {turns} -m20000 -w22"))


def _run(folder: Path, command: str) -> str:
    done = subprocess.run(
        command.split(),
        cwd=folder,
        stdin=NULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    # Spin itself ends a replay of a broken assertion with 1.
    if done.returncode != 0 and " -t " not in command:
        raise NotChecked(f"{command}: {done.stdout[-2000:]}")
    return done.stdout
