"""What may be stored as JSON, and what comes back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenure.codec import clean_text, cut_text, dumps, loads
from tenure.errors import InvalidArgument
from tenure.limits import short

ROOMY = 1_000_000
LARGEST = 2**63 - 1

texts = st.text(st.characters(exclude_characters="\0", codec="utf-8"))
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-LARGEST, LARGEST)
    | st.floats(-1e16, 1e16, exclude_min=True, exclude_max=True, allow_nan=False)
    | texts
)
values = st.recursive(leaves, lambda v: st.lists(v) | st.dictionaries(texts, v), max_leaves=20)


@given(values)
@example(-0.0)
@example({"a": [-0.0, {"b": -0.0}]})
def test_what_is_accepted_comes_back_equal_and_of_the_same_types(value: Any) -> None:
    text = dumps(value, "payload", ROOMY)
    back = loads(text)
    assert back == value
    assert _types(back) == _types(value)
    assert "-0.0" not in _numbers(back)


@given(values)
def test_the_text_is_spaced_as_jsonb_prints_it(value: Any) -> None:
    text = dumps(value, "payload", ROOMY)
    assert text == json.dumps(loads(text), ensure_ascii=False, separators=(", ", ": "))


def _types(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _types(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_types(child) for child in value]
    return type(value)


def _numbers(value: Any) -> list[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for child in value for number in _numbers(child)]
    return [repr(value)] if isinstance(value, float) else []


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "back"),
    [
        ((1, (2,)), [1, [2]]),
        ({1: "one", -2: "minus two"}, {"1": "one", "-2": "minus two"}),
        (Colour.RED, "red"),
        ({Colour.RED: True}, {"red": True}),
    ],
)
def test_what_is_stored_as_something_else_is_stored_as_documented(value: Any, back: Any) -> None:
    assert loads(dumps(value, "payload", ROOMY)) == back


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Decimal("1.10"), "payload: Decimal is not JSON"),
        ({"items": [0, 1, 2, {"price": Decimal(1)}]}, "payload.items[3].price: Decimal is not"),
        ({"when": datetime(2026, 1, 1, tzinfo=UTC)}, "payload.when: datetime is not JSON"),
        ([UUID(int=0)], "payload[0]: UUID is not JSON"),
        ((b"x",), "payload[0]: bytes is not JSON"),
        ({"s": {1}}, "payload.s: set is not JSON"),
        (object(), "payload: object is not JSON"),
        (float("nan"), "payload: nan is not JSON"),
        ([float("inf")], "payload[0]: inf is not JSON"),
        (float("-inf"), "payload: -inf is not JSON"),
        (1e16, "payload: the float 1e+16 is"),
        (-1e300, "payload: the float -1e+300 is"),
        (LARGEST + 1, "payload: an int beyond"),
        (-LARGEST - 1, "payload: an int beyond"),
        (10**10_000, "payload: an int beyond"),
        ("a\0b", "payload: a str with a NUL"),
        ({"a b": "\ud800"}, "payload['a b']: a str with a lone surrogate"),
        ({"a": {"x\0": 1}}, "payload.a: the key 'x\\x00' is a str with a NUL"),
        ({"\udfff": 1}, "payload: the key '\\udfff' is a str with a lone surrogate"),
        ({1.5: 1}, "payload: a key of type float is not JSON"),
        ({True: 1}, "payload: a key of type bool is not JSON"),
        ({None: 1}, "payload: a key of type NoneType is not JSON"),
        ({10**10_000: 1}, "payload: a key is an int beyond"),
        ([{1: "a", "1": "b"}], "payload[0]: the key 1 is there as int and as str"),
        ({"x" * 100: [b""]}, f"payload['{'x' * 40}'][0]: bytes"),
    ],
    ids=short,
)
def test_what_would_not_come_back_is_refused_with_its_path(value: Any, message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        dumps(value, "payload", ROOMY)
    assert str(refused.value).startswith(message)
    assert refused.value.hint


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_64_levels_are_kept() -> None:
    assert loads(dumps(nested(64), "payload", ROOMY)) == nested(64)


@pytest.mark.parametrize("depth", [65, 20_000])
def test_more_than_64_levels_are_refused(depth: int) -> None:
    with pytest.raises(InvalidArgument, match="payload is nested more than 64 deep"):
        dumps({"deep": nested(depth - 1)}, "payload", ROOMY)


def test_a_list_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(InvalidArgument, match="nested more than 64 deep"):
        dumps(value, "payload", ROOMY)


def test_a_small_value_that_stands_for_a_huge_text_is_refused_at_once() -> None:
    value: list[Any] = [0, 0]
    for _ in range(60):
        value = [value, value]
    with pytest.raises(InvalidArgument, match="payload is too large"):
        dumps(value, "payload", ROOMY)


def test_size_is_counted_in_bytes_of_utf_8() -> None:
    assert dumps("é" * 49, "payload", 100)
    with pytest.raises(InvalidArgument, match="payload is 102 bytes"):
        dumps("é" * 50, "payload", 100)


def test_no_text_means_none() -> None:
    assert loads(None) is None
    assert loads("null") is None


@given(st.text(), st.integers(3, 60))
@example("é" * 40, 3)
@example("\0" * 30, 60)
def test_a_cut_text_fits_and_can_be_stored(text: str, max_bytes: int) -> None:
    cut = cut_text(text, max_bytes)
    assert len(cut.encode()) <= max_bytes
    assert "\0" not in cut
    clean = clean_text(text)
    if len(clean.encode()) <= max_bytes:
        assert cut == clean
    else:
        assert cut.endswith("…")
        assert clean.startswith(cut[:-1])
        # No character more would have fitted.
        assert len((cut + clean[len(cut) - 1]).encode()) > max_bytes


def test_what_cannot_be_stored_is_replaced_in_a_text_for_people() -> None:
    assert clean_text("a\0b\ud800c") == "a\ufffdb\ufffdc"
    assert clean_text("né 😀") == "né 😀"


def test_a_very_long_text_is_cut_before_it_is_looked_through() -> None:
    assert cut_text("x" * 50_000_000, 8192) == "x" * 8189 + "…"
