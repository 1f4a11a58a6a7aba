"""A server for tests whose data lies in memory, where the machine lends any."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tenure import embedded

_MEMORY = Path("/dev/shm")
_ENOUGH = 2 << 30  # bytes; a container's 64 MB are too few

# A clone of a database is hundreds of small files: their cost is what memory saves. What is
# written lately stays in memory too, hence the limit.
SETTINGS: Mapping[str, str] = {"max_wal_size": "128MB"}


def temporary(settings: Mapping[str, str] = embedded.FAST) -> embedded.Server:
    """Like `embedded.temporary`: not started yet, in a new folder that `close` removes."""
    settings = {**SETTINGS, **settings}
    if not _roomy():
        return embedded.temporary(settings)
    base = Path(tempfile.mkdtemp(prefix="tenure-", dir=_MEMORY))
    return embedded.Server(base, settings=settings)


def _roomy() -> bool:
    # For root the server's own programs may have to be copied beside the data, and run there.
    return (
        _MEMORY.is_dir()
        and os.access(_MEMORY, os.W_OK | os.X_OK)
        and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
        and shutil.disk_usage(_MEMORY).free >= _ENOUGH
    )
