"""A sample of what `make schedules` performs in full."""

from __future__ import annotations

import pytest

from tests.schedules import crew, house
from tests.schedules.families import BY_NAME, FAMILIES
from tests.schedules.perform import START, Theatre
from tests.schedules.play import begun, family, orders
from tests.schedules.report import Counts, counted, table

SEED = 4
SCHEDULES = 500


@pytest.mark.timeout(300)
@pytest.mark.parametrize("backend", ["postgres", "sqlite"])
def test_schedules_drawn_by_lot_go_as_the_model_says(backend: str, template: str) -> None:
    tasks = crew.tasks([backend], [], sample=SCHEDULES, seed=SEED)
    with house.opened(backend, template) as opened:
        theatre = Theatre(opened)
        results = [
            counted(theatre, backend, BY_NAME[task.family], crew.chosen(task)) for task in tasks
        ]

    failures = [failure for counts in results for failure in counts.failures]
    assert not failures, f"seed {SEED}\n" + "\n\n".join(failures)
    assert sum(counts.schedules for counts in results) > 0.9 * SCHEDULES
    assert (sum(counts.blocked for counts in results) > 0) == (backend == "postgres")


def test_every_order_is_found_once() -> None:
    scripts = family(
        "x", "ada: enqueue, claim", ada="renew, complete", olga="cancel", broom="sweep"
    )

    found = list(orders(begun(scripts, "q", START, holds_rows=True)))

    assert len(found) == len(set(found)) == crew.interleavings(scripts) == 12


def test_who_waits_takes_no_step_until_the_holder_has_ended() -> None:
    scripts = family("x", "ada: enqueue, claim", ada="begin, guard, commit", olga="cancel, retry")

    found = list(orders(begun(scripts, "q", START, holds_rows=True)))

    assert "aabab" in found
    assert "aabba" not in found


def test_who_waits_for_a_holder_that_is_done_goes_on_when_that_rolls_back() -> None:
    scripts = family("x", "ada: enqueue, claim", ada="begin, guard", olga="cancel, retry")

    assert "aabb" in orders(begun(scripts, "q", START, holds_rows=True))


def test_nobody_waits_on_sqlite() -> None:
    scripts = BY_NAME["guard-guard-cancel"]

    found = list(orders(begun(scripts, "q", START, holds_rows=False)))

    assert len(found) == crew.interleavings(scripts)


def test_a_claim_inside_a_transaction_is_not_for_sqlite() -> None:
    assert BY_NAME["claim_job-uncommitted"].backends == ("postgres",)
    assert BY_NAME["guard-reclaim"].backends == ("postgres", "sqlite")
    assert sum("sqlite" in f.backends for f in FAMILIES) > 40


def test_the_table_counts_what_was_seen() -> None:
    counts = Counts(backend="postgres", family="cancel-fail", schedules=3, steps=24, blocked=2)
    counts.words["complete: lost"] = 5

    lines = table([counts], BY_NAME)

    assert ["cancel-fail", "3", "24", "2", "0", "0.0"] in [line.split() for line in lines]
    assert ["complete:", "lost", "5"] in [line.split() for line in lines]
    scripts = "a ada: renew, fail now, complete | b olga: cancel, retry, cancel | "
    assert any(scripts in line for line in lines)
