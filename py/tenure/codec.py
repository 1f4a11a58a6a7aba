"""JSON as both backends can keep it, checked before any SQL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

from tenure.errors import InvalidArgument
from tenure.values import Json

MAX_DEPTH = 64
MAX_INT = 2**63 - 1
MAX_FLOAT = 1e16
"""From here on a float is written without a fraction, and jsonb gives an int back."""

_CONTAINERS = (dict, list)
_PLAIN_MEMBERS = 50
_TOGETHER = 50

REPLACEMENT = "\ufffd"
CUT_MARK = "…"

_JSON_HINT = "use None, bool, int, float, str, list, and dict with str keys"
_TEXT_HINT = "replace the character"
_AS_STR_HINT = "write it as a str"
# Spaced as jsonb prints it, so that both backends measure a value alike.
_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(", ", ": ")
).encode


def dumps(value: Json, what: str, max_bytes: int) -> str:
    """The JSON text of `value`.

    Tuples become lists, int keys become str keys, -0.0 becomes 0.0. Raises `InvalidArgument`
    for everything that would not come back as it went in from both backends, naming the path
    (`payload.items[3].price`) that starts with `what`; also for nesting deeper than 64, and for
    a text longer than `max_bytes` bytes of UTF-8.
    """
    text = _encode(checked(value, what, max_bytes))
    _check_size(text, what, max_bytes)
    return text


def checked(value: Json, what: str, max_bytes: int) -> Json:
    """`value` as `dumps` would write it, which may yet be too long."""
    if type(value) in _CONTAINERS and _plain(value, _PLAIN_MEMBERS) >= 0:
        return value
    if _check(value, what, max_bytes):
        return _without_negative_zero(value)
    return value


def dumps_all(values: Sequence[dict[str, Json]], what: str, max_bytes: int) -> str:
    """The JSON text of objects whose members are `checked`; bounds the one that is named `what`.

    Written some at a time, for the encoder's start costs more than a small value.
    """
    texts = []
    for first in range(0, len(values), _TOGETHER):
        some = values[first : first + _TOGETHER]
        text = _encode(some)
        if len(text) > max_bytes // 4:  # a character is four bytes at the most
            for value in some:
                _check_size(_encode(value[what]), what, max_bytes)
        texts.append(text[1:-1])
    return f"[{', '.join(texts)}]"


class JsonText(str):
    """A JSON text that `dumps` has made: where a value is taken, it is stored as it stands."""

    __slots__ = ()


def loads(text: str | None) -> Json:
    """The value of a stored JSON text; None for none."""
    return None if text is None else json.loads(text)


def loads_all(texts: Sequence[str | None]) -> list[Json]:
    """The values of stored JSON texts; None for none."""
    whole = "[" + ",".join([text or "null" for text in texts]) + "]"
    values: list[Json] = json.loads(whole)
    return values


def clean_text(text: str) -> str:
    """`text` with NULs and lone surrogates, which cannot be stored, replaced by U+FFFD."""
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
    if _encodable(text):
        return text
    return "".join(REPLACEMENT if "\ud800" <= c <= "\udfff" else c for c in text)


def cut_text(text: str, max_bytes: int) -> str:
    """`text`, clean, cut between characters to `max_bytes` bytes of UTF-8, marked where cut."""
    # A character is a byte at least, so no more than these can stay: a text of 50 MB costs little.
    cut = len(text) > max_bytes
    data = clean_text(text[:max_bytes] if cut else text).encode()
    if not cut and len(data) <= max_bytes:
        return data.decode()
    return data[: max_bytes - len(CUT_MARK.encode())].decode(errors="ignore") + CUT_MARK


class _Node(NamedTuple):
    """A container that is still to be looked into, and the way back to the root."""

    value: Any
    depth: int
    key: object
    parent: _Node | None


def _plain(value: Any, left: int) -> int:
    """How many members are left of so many after a small value of the usual types.

    Below 0 when it is not small, or needs a closer look. Each level has a member at the least,
    so few levels are looked into.
    """
    left -= len(value)
    if left < 0:
        return left
    if type(value) is dict:
        for key in value:
            if type(key) is not str or "\0" in key or not (key.isascii() or _encodable(key)):
                return -1
        value = value.values()
    for child in value:
        kind = type(child)
        if kind is str:
            if "\0" in child or not (child.isascii() or _encodable(child)):
                return -1
        elif kind is int:
            if not -MAX_INT <= child <= MAX_INT:
                return -1
        elif kind is float:
            if not -MAX_FLOAT < child < MAX_FLOAT or child == 0:
                return -1
        elif kind in _CONTAINERS:
            left = _plain(child, left)
            if left < 0:
                return left
        elif child is not None and kind is not bool:
            return -1
    return left


def _check(value: Json, what: str, max_bytes: int) -> bool:
    """Refuse what cannot be kept; whether a -0.0 is inside.

    Iterative: a list nested 20,000 deep must be an answer, not a RecursionError. The members are
    counted, because a small value may hold one list many times over.
    """
    root = _Node([value], 0, None, None)
    pending = [root]
    members = 0
    negative_zero = False
    while pending:
        node = pending.pop()
        members += len(node.value)
        if members > max_bytes:
            _too_large(what, None, max_bytes)
        if isinstance(node.value, dict):
            _check_keys(node, what)
            items: Iterable[tuple[object, Any]] = node.value.items()
        else:
            items = enumerate(node.value)
        for key, child in items:
            if child is None or child is True or child is False:
                continue
            if isinstance(child, str):
                if "\0" in child or not _encodable(child):
                    _refuse(node, key, what, _text_fault(child), _TEXT_HINT)
            elif isinstance(child, int):
                if not -MAX_INT <= child <= MAX_INT:
                    _refuse(node, key, what, f"an int beyond ±{MAX_INT}", _AS_STR_HINT)
            elif isinstance(child, float):
                if not -MAX_FLOAT < child < MAX_FLOAT:  # not for NaN either
                    _refuse(node, key, what, _float_fault(child), _AS_STR_HINT)
                negative_zero = negative_zero or (child == 0 and str(float(child))[0] == "-")
            elif isinstance(child, (dict, list, tuple)):
                if node.depth == MAX_DEPTH:
                    raise InvalidArgument(
                        f"{what} is nested more than {MAX_DEPTH} deep", hint="store it flatter"
                    )
                pending.append(_Node(child, node.depth + 1, key, node))
            else:
                _refuse(node, key, what, f"{type(child).__qualname__} is not JSON", _JSON_HINT)
    return negative_zero


def _check_keys(node: _Node, what: str) -> None:
    for key in node.value:
        if isinstance(key, str):
            if "\0" not in key and _encodable(key):
                continue
            fault, hint = f"the key {key[:40]!r} is {_text_fault(key)}", _TEXT_HINT
        elif isinstance(key, bool) or not isinstance(key, int):
            fault, hint = f"a key of type {type(key).__qualname__} is not JSON", _JSON_HINT
        elif not -MAX_INT <= key <= MAX_INT:
            fault, hint = f"a key is an int beyond ±{MAX_INT}", _AS_STR_HINT
        elif int.__repr__(key) in node.value:
            fault, hint = f"the key {int(key)} is there as int and as str", "leave one out"
        else:
            continue
        assert node.parent is not None  # the root is no dict
        _refuse(node.parent, node.key, what, fault, hint)


def _refuse(node: _Node, key: object, what: str, fault: str, hint: str) -> NoReturn:
    raise InvalidArgument(f"{_path(node, key, what)}: {fault}", hint=hint)


def _check_size(text: str, what: str, max_bytes: int) -> None:
    size = len(text) if text.isascii() else len(text.encode())
    if size > max_bytes:
        _too_large(what, size, max_bytes)


def _too_large(what: str, size: int | None, max_bytes: int) -> NoReturn:
    raise InvalidArgument(
        f"{what} is {'too large' if size is None else f'{size} bytes'} as JSON",
        hint=f"at most {max_bytes} bytes; keep what is larger elsewhere and pass where it is",
    )


def _text_fault(text: str) -> str:
    return "a str with a NUL" if "\0" in text else "a str with a lone surrogate"


def _float_fault(number: float) -> str:
    if number != number or number in (float("inf"), float("-inf")):
        return f"{float(number)} is not JSON"
    return f"the float {float(number)} is {MAX_FLOAT:g} or more and would come back as an int"


def _path(node: _Node, key: object, what: str) -> str:
    steps: list[str] = []
    while node.parent is not None:
        steps.append(_step(key))
        node, key = node.parent, node.key
    return what + "".join(reversed(steps))


def _step(key: object) -> str:
    if isinstance(key, str):
        return f".{key}" if key.isidentifier() and len(key) <= 40 else f"[{key[:40]!r}]"
    return f"[{key}]"


def _encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_negative_zero(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _without_negative_zero(child) for key, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_negative_zero(child) for child in value]
    return 0.0 if isinstance(value, float) and value == 0 else value
