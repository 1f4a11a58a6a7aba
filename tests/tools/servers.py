"""Servers whose data lies in memory, where the machine lends enough of it.

A clone of a database is hundreds of small files; to make and remove those on a disk takes longer
than most tests.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tenure import embedded

MEMORY = Path("/dev/shm")
ENOUGH = 1 << 30  # bytes: twice what the tests take; a container may have 64 MB only
PREFIX = "tenure-tests-"
SETTINGS: Mapping[str, str] = {"max_wal_size": "128MB"}


def temporary(settings: Mapping[str, str] = embedded.FAST) -> embedded.Server:
    """Like `embedded.temporary`: not started yet, in a new folder that `close` removes."""
    settings = {**SETTINGS, **settings}
    if not _is_roomy():
        return embedded.temporary(settings)
    _remove_abandoned()
    base = Path(tempfile.mkdtemp(prefix=PREFIX, dir=MEMORY))
    _locked(base)
    return embedded.Server(base, settings=settings)


def _is_roomy() -> bool:
    # For root the server's programs may have to be copied beside the data, and are run there.
    return (
        MEMORY.is_dir()
        and os.access(MEMORY, os.W_OK | os.X_OK)
        and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
        and shutil.disk_usage(MEMORY).free >= ENOUGH
    )


def _remove_abandoned() -> None:
    """Give back the memory of runs that were killed."""
    for base in MEMORY.glob(f"{PREFIX}*"):
        with suppress(OSError):  # another user's, another run's, or gone
            lock = _locked(base)
            if (base / "data").exists():
                shutil.rmtree(base, ignore_errors=True)
            os.close(lock)


def _locked(base: Path) -> int:
    """Hold a folder until this process ends; an OSError when another does."""
    descriptor = os.open(base, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
