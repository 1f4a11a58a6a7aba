"""The SQLSTATEs of sql/ are the classes of tenure.errors."""

from __future__ import annotations

import inspect
import re

from tenure import errors
from tenure._resources import sql_root
from tenure.postgres_call import BY_SQLSTATE

CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, errors.TenureError)
]
CONDITION_NAMES = {"invalid_parameter_value": "22023"}


def raised() -> set[str]:
    """Every code that a function raises on purpose and that a client can meet."""
    functions = sql_root().joinpath("functions")
    text = "\n".join(file.read_text(encoding="utf-8") for file in functions.iterdir())
    code = "|".join(["TN[0-9]{3}", *CONDITION_NAMES])
    found = re.findall(rf"errcode\s*=\s*'({code})'", text)
    return {CONDITION_NAMES.get(name, name) for name in found}


def test_every_code_that_sql_raises_is_a_class_and_every_class_with_a_code_is_raised() -> None:
    assert raised() == {c.sqlstate for c in CLASSES if c.sqlstate is not None}


def test_no_two_classes_share_a_code() -> None:
    with_code = [c for c in CLASSES if c.sqlstate is not None]
    assert set(BY_SQLSTATE.values()) == set(with_code)


def test_every_class_says_what_is_true_and_is_in_the_list() -> None:
    listed = dict(re.findall(r"\+ (\w+)(?: +(TN\d{3}|22023))?", errors.__doc__ or ""))
    assert {c.__name__: c.sqlstate or "" for c in CLASSES if c is not errors.TenureError} == listed
    assert all(c.__doc__ for c in CLASSES)


def test_the_hint_is_shown_with_the_message() -> None:
    error = errors.SchemaOutdated("no tenure in schema jobs", hint="run: tenure migrate")
    assert str(error) == "no tenure in schema jobs (run: tenure migrate)"
    assert str(errors.LeaseLost("job 1 is lost")) == "job 1 is lost"
