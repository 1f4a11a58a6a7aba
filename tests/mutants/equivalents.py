"""Predicates that no test can miss, each with the reason."""

from __future__ import annotations

EQUIVALENTS: dict[str, str] = {}
