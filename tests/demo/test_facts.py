"""What is analysed, and what is recorded about it."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from tenure.demo.facts import facts_of
from tenure.demo.library import Source, sample, sources, take
from tenure.demo.scenario import NAMED

SOURCE = b"""\
import os, json.decoder
from . import near
from ..far import thing

class A:
    def a(self):
        import re
        async def b(): ...

if A:
    try:
        class B: ...
    except ValueError:
        def c(): ...
    else:
        def d(): ...
    finally:
        def e(): ...
else:
    match A:
        case int():
            def f(): ...
"""


def test_definitions_and_imports_are_found_at_any_depth() -> None:
    facts = facts_of(SOURCE)
    assert facts == {
        "sha256": sha256(SOURCE).hexdigest(),
        "bytes": len(SOURCE),
        "lines": SOURCE.count(b"\n"),
        "classes": 2,
        "functions": 6,
        "imports": [".", "..far", "json.decoder", "os", "re"],
        "fault": None,
    }


@pytest.mark.parametrize("source", [b"def\n", b"\0", b"# coding: nowhere\n", b"(" * 3_000])
def test_a_source_that_does_not_parse_is_a_fact(source: bytes) -> None:
    facts = facts_of(source)
    assert facts["classes"] is None
    assert facts["fault"]
    assert facts["sha256"] == sha256(source).hexdigest()


def test_analysis_can_be_ended_between_statements() -> None:
    left = 2

    def check() -> None:
        nonlocal left
        left -= 1
        if not left:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        facts_of(SOURCE, check)


def test_the_standard_library_has_hundreds_of_sources_of_its_own() -> None:
    found = sources()
    assert len(found) > 300
    modules = {source.module for source in found}
    assert {*NAMED, "json", "argparse"} <= modules
    assert not any("site-packages" in source.path.parts for source in found)


def _source(name: str) -> Source:
    return Source(path=Path(f"{name}.py"), module=name)


def test_named_sources_are_taken_out_and_a_missing_one_is_replaced() -> None:
    found = [_source(name) for name in "abcd"]
    assert take(found, ("b", "absent")) == [_source("b"), _source("d")]
    assert found == [_source("a"), _source("c")]


def test_a_sample_is_spread_evenly() -> None:
    found = [_source(name) for name in "abcdefgh"]
    assert [source.module for source in sample(found, 4)] == ["a", "c", "e", "g"]
    assert sample(found, 8) == sample(found, 100) == found
