"""Python's values as SQL that psql takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Sql:
    """An expression as it stands, for what would be too long as a literal."""

    text: str


def text(value: str) -> str:
    if value.isprintable() and "\\" not in value:
        return "'" + value.replace("'", "''") + "'"
    escaped = "".join(
        c if c.isprintable() and c not in "\\'" else f"\\U{ord(c):08X}" for c in value
    )
    return f"E'{escaped}'"


def literal(value: Any, type_: str) -> str:
    """A value of a type; a list is an array from 1, None is null."""
    if isinstance(value, Sql):
        return f"({value.text})::{type_}"
    if value is None:
        return f"null::{type_}"
    if type_.endswith("[]"):
        if isinstance(value, Sequence) and not isinstance(value, str):
            members = ", ".join(literal(member, type_[:-2]) for member in value)
            return f"array[{members}]::{type_}"
    elif type_ == "jsonb":
        return f"{text(json.dumps(value, ensure_ascii=False))}::jsonb"
    elif isinstance(value, bool | int | float):
        return f"({value})::{type_}"
    return f"{text(str(value))}::{type_}"
