"""The SQL files and migrations: inside the wheel, or beside py/ in a checkout."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


def sql_root() -> Traversable:
    """The folder sql/: what tenure is."""
    return _root("_sql", "sql")


def migrations_root() -> Traversable:
    """The folder migrations/: how tenure became that."""
    return _root("_migrations", "migrations")


def _root(packaged: str, in_checkout: str) -> Traversable:
    inside = files("tenure").joinpath(packaged)
    if inside.is_dir():
        return inside
    beside = Path(__file__).resolve().parents[2] / in_checkout
    if beside.is_dir() and (beside.parent / "pyproject.toml").is_file():
        return beside
    raise FileNotFoundError(f"tenure was installed without its {in_checkout}/ files")
