"""The examples of docs/testing.md, run word for word by a pytest of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.clients import readme


def test_the_documented_tests_pass(tmp_path: Path) -> None:
    text = (readme.README.parent / "docs" / "testing.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```", text)
    for name, block in zip(["shop.py", "conftest.py", "test_shop.py"], blocks, strict=True):
        (tmp_path / name).write_text(block, encoding="utf-8")

    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 passed" in ran.stdout
