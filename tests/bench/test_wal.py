"""What a job makes the server write, which no machine's speed changes."""

from __future__ import annotations

import pytest

from tests.bench.counted import counted
from tests.bench.wal import Written, lifecycle

A_LITTLE_MORE = 1.04
"""Batches are cut by time, so that a page or a commit more is written now and then."""


@pytest.fixture(scope="module")
def written() -> tuple[Written, Written]:
    with counted() as (dsn, _):
        return lifecycle(dsn)


def test_an_enqueued_job_is_one_row_in_two_indexes(written: tuple[Written, Written]) -> None:
    enqueued, _ = written

    assert enqueued.index_entries <= 2 * A_LITTLE_MORE
    assert enqueued.bytes <= 348 * A_LITTLE_MORE


def test_a_job_that_is_worked_off_is_three_more_entries_of_indexes(
    written: tuple[Written, Written],
) -> None:
    """Two when it begins to run, and one in the history."""
    _, worked = written

    assert worked.index_entries <= 3 * A_LITTLE_MORE
    assert worked.records["Heap/DELETE"] == pytest.approx(1, abs=0.01)
    assert worked.bytes <= 780 * A_LITTLE_MORE


def test_a_row_is_locked_for_its_claim_and_for_its_end(written: tuple[Written, Written]) -> None:
    """A third lock is that of an update which finds no room on its page."""
    _, worked = written

    assert worked.row_locks <= 2 * A_LITTLE_MORE
