"""The model answers as the table of the contract says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure.values import Enqueued, Failure, Settled, Verdict
from tests import model
from tests.contract.backends import START
from tests.contract.scenario import BROKEN, SECOND, STATES, Scene
from tests.contract.test_cells import CELLS, VERBS, Act, Cell, Sight, consistent, every_way, seen
from tests.model.backend import Model


@pytest.mark.parametrize("state", STATES)
def test_every_verb_of_the_model_does_what_the_table_says(state: str) -> None:
    for verb, way in every_way():
        backend = Model()
        shown = STATES[state](Scene(backend.control_plane, backend.clock))
        before = Sight.of(backend.records, shown.job_id)
        backend.clock.advance(SECOND)

        answer = VERBS[verb][way == "settle"](Act(backend, shown))

        after = Sight.of(backend.records, shown.job_id)
        consistent(before, after, verb, shown, backend.clock.now)
        cell = CELLS[state][verb]
        job, due, row, error = seen(before, after, backend.clock.now)
        found = Cell(answer, job, due, row, error if cell.error else "")
        assert found == cell, f"{verb} by {way}"


def failed_once() -> tuple[model.World, Settled]:
    world, enqueued = model.enqueue(model.World(now=START), "q", "work")
    assert isinstance(enqueued, Enqueued)
    world, _ = model.claim_job(world, enqueued.job_id, "ada")
    return model.fail(world, enqueued.job_id, "ada", 1, BROKEN)


def due_after(answer: Settled, seconds: float) -> Settled:
    return Settled(
        job_id=answer.job_id,
        token=answer.token,
        verdict=answer.verdict,
        status=answer.status,
        next_attempt_at=START + timedelta(seconds=seconds),
    )


@pytest.mark.parametrize("seconds", [3.75, 4.2, 5])
def test_a_due_time_within_the_backoff_is_adopted(seconds: float) -> None:
    world, answer = failed_once()

    world = model.adopt(world, answer, due_after(answer, seconds))

    due = START + timedelta(seconds=seconds)
    assert model.claim_job(model.at(world, due - timedelta(microseconds=1)), 1, "bob")[1] is None
    assert model.claim_job(model.at(world, due), 1, "bob")[1] is not None


@pytest.mark.parametrize("seconds", [0, 3.749, 5.001])
def test_a_due_time_outside_the_backoff_is_none_the_model_permits(seconds: float) -> None:
    world, answer = failed_once()

    with pytest.raises(model.Disagreement):
        model.adopt(world, answer, due_after(answer, seconds))


def test_what_depends_on_a_due_time_that_was_not_adopted_is_not_guessed() -> None:
    world, _ = failed_once()

    with pytest.raises(model.Undetermined):
        model.claim_job(model.at(world, START + timedelta(seconds=4)), 1, "bob")


def test_another_verdict_than_the_models_is_a_disagreement() -> None:
    world, _ = failed_once()
    world, mine = model.complete(world, 1, "ada", 1)
    assert mine.verdict is Verdict.LOST
    real = Settled(job_id=1, token=1, verdict=Verdict.OK, status=mine.status, next_attempt_at=None)

    with pytest.raises(model.Disagreement, match="lost"):
        model.adopt(world, mine, real)


def running() -> model.World:
    world, _ = model.enqueue(model.World(now=START), "q", "work", dedup_key="one")
    return model.claim_job(world, 1, "ada")[0]


def seen_by_another(world: model.World) -> model.World:
    """The world of a caller who meets an open transaction that has changed the job."""
    return model.World(
        now=world.now,
        jobs=world.jobs,
        held=frozenset({1}),
        held_keys=frozenset({("q", "one")}),
    )


def test_a_row_that_is_held_defers_its_owner_and_nobody_else() -> None:
    world = seen_by_another(running())

    assert model.complete(world, 1, "ada", 1)[1].verdict is Verdict.DEFERRED
    assert model.complete(world, 1, "bob", 1)[1].verdict is Verdict.LOST
    assert model.fail(world, 1, "ada", 0, Failure(error_type="E"))[1].verdict is Verdict.LOST
    [renewal] = model.renew(world, "ada", [(1, 1)])[1]
    assert renewal.outcome == "deferred"


def test_a_row_that_is_held_is_waited_for_by_guard_operators_and_the_keys_next_producer() -> None:
    world = seen_by_another(running())

    assert model.guard(world, 1, "ada", 1)[1] is model.Waits
    assert model.cancel(world, 1)[1] is model.Waits
    assert model.retry(world, 1)[1] is model.Waits
    assert model.enqueue(world, "q", "work", dedup_key="one")[1] is model.Waits


def test_a_row_that_is_held_is_passed_over_by_sweep_and_reclaim() -> None:
    world = model.at(seen_by_another(running()), START + timedelta(minutes=1))
    [pinned] = model.lapsed(world)[1]

    assert model.sweep(world, "broom") == (world, [])
    assert model.reclaim(world, pinned, "bob") == (world, None)
