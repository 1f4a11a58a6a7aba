"""The public names."""

from __future__ import annotations

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
