"""The README's examples, so that what it shows is what is tested."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def section(title: str) -> str:
    """What stands under a heading, up to the next one of its level."""
    text = README.read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"README.md has no section {title!r}"
    return found.group(1)


def code(title: str, language: str) -> str:
    """The first block in a language under a heading."""
    blocks = re.findall(r"(?ms)^```(\w*)\n(.*?)^```$", section(title))
    found = next((text for word, text in blocks if word == language), None)
    assert found is not None, f"README.md has no {language or 'plain'} block under {title!r}"
    return str(found)
