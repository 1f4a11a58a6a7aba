"""What a figure was measured on."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.server import SETTINGS


def machine() -> dict[str, str]:
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "processor": _line("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": str(os.cpu_count()),
        "memory": _line("/proc/meminfo", "MemTotal"),
        "system": platform.system() + " " + platform.release(),
        "python": platform.python_version(),
        "load before": f"{os.getloadavg()[0]:.2f}",
        "server": ", ".join(f"{name} = {value}" for name, value in SETTINGS.items()),
    }


def _line(path: str, name: str) -> str:
    """What stands after the colon of the first line that begins so."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")
