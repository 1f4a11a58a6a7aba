"""The public names."""

from __future__ import annotations

import subprocess
import sys

import tenure


def test_the_public_names_are_sorted_and_complete() -> None:
    public = {
        name
        for name, value in vars(tenure).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("tenure.")
    }

    assert tenure.__all__ == sorted(tenure.__all__)
    assert public == set(tenure.__all__)


def test_every_error_is_public() -> None:
    from tenure import errors

    names = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.TenureError)
    }

    assert names <= set(tenure.__all__)


def test_what_only_migrations_and_the_command_line_need_is_not_imported_with_the_rest() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, tenure; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()

    assert not {"sqlalchemy", "alembic", "click", "rich"} & set(loaded)
