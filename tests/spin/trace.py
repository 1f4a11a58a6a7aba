"""Makes a counterexample readable."""

from __future__ import annotations

import re

from tests.spin.specification import Specification, Variant

NOT_STEPS = ("spin:", "ltl ", "starting claim", "Never claim")
CYCLE = "START OF CYCLE"


def readable(specification: Specification, variant: Variant, replayed: str) -> str:
    """A header, a line for each step, and the property that the last one breaks."""
    lines = [f"{specification.file} with {variant.name}: {variant.says}", ""]
    number = 0
    for line in replayed.splitlines():
        if CYCLE in line:
            lines.append("     from here on without end:")
        elif line.strip() and not line.startswith(NOT_STEPS):
            number += 1
            lines.append(f"{number:3}  {line.strip()}")
    return "\n".join([*lines, "", f"broken: {_property(specification, replayed)}", ""])


def broken(kept: str) -> str:
    """The property that a kept trace breaks."""
    return kept.rstrip().rpartition("\nbroken: ")[2]


def _property(specification: Specification, replayed: str) -> str:
    """What the comment beside the broken assertion says."""
    failed = re.search(r"^spin: [\w.]+:(\d+), Error: assertion violated", replayed, re.MULTILINE)
    if failed is None:
        return specification.rest
    line = specification.path.read_text().splitlines()[int(failed[1]) - 1]
    comment = re.search(r"/\* (.*) \*/", line)
    return comment[1] if comment else line.strip()
