"""No argument gets more out of a function than its header says."""

from __future__ import annotations

import pytest

from tests.fuzz.stage import fuzz

SEED, CALLS = 4, 3000


@pytest.mark.timeout(300)
def test_no_argument_gets_more_out_of_a_function_than_its_header_says(fresh_dsn: str) -> None:
    with fuzz(fresh_dsn, SEED) as calls:
        calls.run(CALLS)
        assert calls.findings == [], "\n\n".join(map(str, calls.findings))
