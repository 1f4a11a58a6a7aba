"""The specifications are whole, and what spin and pan print is understood."""

from __future__ import annotations

import re

import pytest

from tests.spin import checker, report, trace
from tests.spin.specification import TRACES, Specification, Variant
from tests.spin.specifications import FLOOR, LEASE, SLEEP, SPECIFICATIONS

needs_spin = pytest.mark.skipif(
    not checker.installed(), reason="spin or gcc is not installed: `make model` installs them"
)

HOLDS = """\

(Spin Version 6.5.2 -- 6 December 2019)
	+ Partial Order Reduction

Full statespace search for:
	never claim         	- (not selected)
	assertion violations	+
	invalid end states	+

State-vector 84 byte, depth reached 207, errors: 0
   972569 states, stored
  3672998 states, matched
  4645567 transitions (= stored+matched)
 13124698 atomic steps
hash conflicts:    123412 (resolved)

Stats on memory usage (in Megabytes):
  103.882	equivalent memory usage for states (stored*(State-vector + overhead))
  200.235	total actual memory usage


unreached in proctype Worker
	lease.pml:339, state 378, "-end-"
	(1 of 378 states)
unreached in proctype Operator
	lease.pml:392, state 48, "free_starts = 0"
	lease.pml:403, state 69, "-end-"
	(2 of 69 states)
unreached in init
	lease.pml:420, state 7, "((gone==3))"
	(1 of 8 states)
unreached in claim ends
	_spin_nvr.tmp:3, state 5, "(1)"
	(1 of 13 states)

pan: elapsed time 7.26 seconds
pan: rate 133962.67 states/second
"""

BREAKS = "pan:1: assertion violated (holder==_pid) (at depth 16)\n" + HOLDS.replace(
    "errors: 0", "errors: 1"
)

REPLAYED = """\
ltl ends: <> ([] ((status==completed)))
ada 1 claims it, token 1
Never claim moves to line 8	[(1)]
<<<<<START OF CYCLE>>>>>
ada 2 renews lease 1
spin: lease.pml:{line}, Error: assertion violated
spin: text of failed assertion: assert((holder==_pid))
spin: trail ends after 17 steps
"""


def test_the_figures_of_a_search_are_read() -> None:
    found = report.read(HOLDS)
    assert (found.states, found.transitions, found.depth) == (972569, 4645567, 207)
    assert (found.megabytes, found.seconds) == (200.235, 7.26)
    assert (found.errors, found.trouble) == (0, None)


def test_states_visited_again_under_fairness_are_not_counted() -> None:
    text = HOLDS.replace("972569 states, stored", "222979 states, stored (2.53796e+06 visited)")
    assert report.read(text).states == 222979


def test_what_no_run_reaches_is_told_apart_from_ends_and_claims() -> None:
    assert report.read(HOLDS).unreached == {
        "Operator, line 392: free_starts = 0",
        "init, line 420: ((gone==3))",
    }


def test_a_broken_assertion_is_an_error() -> None:
    found = report.read(BREAKS)
    assert (found.errors, found.trouble) == (1, "assertion violated (holder==_pid)")


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        (f"error: max search depth too small\n{HOLDS}", "max search depth too small"),
        (f"Warning: Search not completed\n{HOLDS}", "Search not completed"),
        (HOLDS.replace("Full statespace", "Bit statespace"), "the search was not exhaustive"),
    ],
)
def test_a_search_that_left_states_out_is_trouble(text: str, trouble: str) -> None:
    assert report.read(text).trouble == trouble


def test_what_is_no_report_is_refused() -> None:
    with pytest.raises(report.Unreadable, match="states"):
        report.read("pan: out of memory\n")


def test_a_counterexample_reads_as_steps_and_the_property_broken() -> None:
    text = LEASE.path.read_text().splitlines()
    [line] = [n for n, row in enumerate(text, 1) if "assert(holder == _pid)" in row]
    readable = trace.readable(LEASE, LEASE.variants[0], REPLAYED.format(line=line))
    assert readable.splitlines()[2:] == [
        "  1  ada 1 claims it, token 1",
        "     from here on without end:",
        "  2  ada 2 renews lease 1",
        "",
        "broken: one owner: nobody else writes",
    ]
    assert trace.broken(readable) == "one owner: nobody else writes"


def test_each_assertion_has_its_property_beside_it() -> None:
    for specification in SPECIFICATIONS:
        for line in specification.path.read_text().splitlines():
            assert "assert(" not in line or re.search(r"/\* .* \*/$", line), line


@pytest.mark.parametrize("specification", SPECIFICATIONS, ids=lambda s: s.file)
def test_what_a_specification_can_break_is_a_variant(specification: Specification) -> None:
    text = specification.path.read_text()
    macros = set(re.findall(r"#ifn?def (\w+)", text)) - set(re.findall(r"#define (\w+) \d", text))
    assert macros == {variant.name for variant in specification.variants}


def test_the_trace_of_each_variant_is_kept_and_no_other() -> None:
    expected = {s.trace(variant): variant for s in SPECIFICATIONS for variant in s.variants}
    assert set(TRACES.iterdir()) == set(expected)
    for kept, variant in expected.items():
        text = kept.read_text()
        assert variant.says in text.splitlines()[0]
        assert trace.broken(text), kept


@needs_spin
@pytest.mark.parametrize(
    ("specification", "name"), [(LEASE, "WITHOUT_TOKEN"), (SLEEP, "WITHOUT_LAST_CLAIM")]
)
def test_a_broken_variant_fails(specification: Specification, name: str) -> None:
    variant = next(v for v in specification.variants if v.name == name)
    found, readable = checker.break_(specification, variant)
    assert found.errors == 1
    kept = specification.trace(variant).read_text()
    assert trace.broken(readable) == trace.broken(kept)


@needs_spin
def test_a_variant_that_is_not_broken_has_no_counterexample() -> None:
    found, readable = checker.break_(FLOOR, Variant("NOTHING", "nothing is broken"))
    assert (found.errors, found.trouble, readable) == (0, None, "")
    assert found.unreached == frozenset()
