"""Finds the app that MODULE:APP names."""

from __future__ import annotations

import importlib
import sys
import traceback
from types import ModuleType

from tenure.app import Tenure
from tenure.errors import InvalidArgument

_FORM = "such as shop.jobs:app, where shop/jobs.py has app = Tenure(...)"


def load_app(name: str) -> Tenure:
    """The app; raises `InvalidArgument` that says which part of the name is wrong.

    Modules are looked for in the current folder first.
    """
    module_name, colon, attributes = name.partition(":")
    if not (colon and module_name and attributes):
        raise InvalidArgument(f"{name!r} is not MODULE:APP", hint=_FORM)
    if "" not in sys.path:
        sys.path.insert(0, "")
    found: object = _imported(module_name)
    path = module_name
    for attribute in attributes.split("."):
        try:
            found = getattr(found, attribute)
        except AttributeError:
            raise InvalidArgument(f"{path} has no {attribute!r}", hint=_FORM) from None
        path += f"{':' if path == module_name else '.'}{attribute}"
    if not isinstance(found, Tenure):
        raise InvalidArgument(
            f"{path} is a {type(found).__qualname__}, not a Tenure app", hint=_FORM
        )
    return found


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise InvalidArgument(
                f"there is no module {error.name!r}", hint="run this where it can be imported"
            ) from None
        raise _broken(name, error) from error
    except Exception as error:
        raise _broken(name, error) from error


def _broken(name: str, error: Exception) -> InvalidArgument:
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{error.filename}:{error.lineno}"
    else:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{frame.filename}:{frame.lineno}"
    return InvalidArgument(f"module {name!r} fails: {type(error).__name__}: {error}", hint=place)
