"""What is taken out of the contract is noticed, with a schedule that shows it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from tenure import sqlite_lease
from tenure.install import choose_schema
from tests.schedules import house, readable, sqlite
from tests.schedules.families import BY_NAME
from tests.schedules.perform import START, Backend, Performance, Theatre
from tests.schedules.play import begun, orders

FUNCTIONS = Path(__file__).resolve().parents[2] / "sql" / "functions"
TRIES = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A piece of a function, what stands in its place, the family that notices."""

    function: str
    piece: str
    instead: str
    family: str


LOSSES = {
    "the token predicate of settle_jobs": Loss(
        function="settle_jobs",
        piece="j.token = a.token",
        instead="true",
        family="own-late-verbs",
    ),
    "the token predicate of renew": Loss(
        function="renew",
        piece="where j.token = a.token\n       and j.worker_id",
        instead="where j.worker_id",
        family="own-late-verbs",
    ),
    "the token predicate of guard": Loss(
        function="guard",
        piece="and j.token = p_token\n       and j.worker_id = p_worker_id\n       and not",
        instead="and j.worker_id = p_worker_id\n       and not",
        family="own-late-guard",
    ),
    "the lapse predicate of reclaim": Loss(
        function="reclaim",
        piece="and j.lease_expires_at <= v_now",
        instead="",
        family="reclaim-early",
    ),
    "the pinned instant of reclaim": Loss(
        function="reclaim",
        piece="and j.lease_expires_at = p_lease_expires_at",
        instead="",
        family="reclaim-renew-complete",
    ),
    "the update of guard": Loss(
        function="guard",
        piece="""update job as j
       set lease_expires_at = greatest(
             j.lease_expires_at,
             date_trunc('milliseconds', least(v_now + p_lease_for, j.claimed_at + j.timeout)))
     where j.id = p_job_id
       and j.token = p_token
       and j.worker_id = p_worker_id
       and not (j.cancel_requested and v_require);""",
        instead="""perform from job as j
     where j.id = p_job_id
       and j.token = p_token
       and j.worker_id = p_worker_id
       and not (j.cancel_requested and v_require)
       for key share;""",
        family="guard-reclaim",
    ),
    "the cancelled branch of the sweep": Loss(
        function="sweep_jobs",
        piece="when l.cancel_requested then 'cancelled'\n             when l.buffered and",
        instead="when l.buffered and",
        family="cancel-complete",
    ),
    "the healing branch of the sweep": Loss(
        function="sweep_jobs",
        piece="when l.sealed then 'completed'",
        instead="",
        family="seal-cancel-sweep",
    ),
    "the lock of claim_job": Loss(
        function="claim_job",
        piece="for no key update of c skip locked",
        instead="",
        family="claim_job-uncommitted",
    ),
}


def first_violation(backend: Backend, family: str) -> Performance | None:
    every = list(orders(begun(BY_NAME[family], "q", START, holds_rows=backend.holds_rows)))
    random.Random(4).shuffle(every)
    theatre = Theatre(backend)
    for order in every[:TRIES]:
        done = theatre.perform(BY_NAME[family], order)
        if done.violations:
            return done
    return None


def without(loss: Loss) -> list[str]:
    """Statements that put the function in its place without the piece."""
    source = (FUNCTIONS / f"{loss.function}.sql").read_text("utf-8")
    assert source.count(loss.piece) == 1, loss.piece
    return [choose_schema("tenure"), source.replace(loss.piece, loss.instead)]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("lost", LOSSES)
def test_a_loss_is_noticed_by_a_schedule_that_can_be_replayed(lost: str, template: str) -> None:
    loss = LOSSES[lost]

    with house.opened("postgres", template, without(loss)) as backend:
        found = first_violation(backend, loss.family)
        assert found is not None
        again = Theatre(backend).perform(found.family, found.order)

    assert again.violations
    told = readable.failure(found, "postgres")
    assert f"--replay '{loss.family}:{found.order}'" in told
    assert "select * from tenure." in told
    assert "NOT AS THE MODEL SAYS" in told


def test_a_wait_that_ends_by_itself_is_noticed(template: str) -> None:
    hasty = "alter function tenure.cancel set lock_timeout = '1ms'"

    with house.opened("postgres", template, [hasty]) as backend:
        found = first_violation(backend, "guard-guard-cancel")

    assert found is not None
    assert "the model says" in found.violations[0]


def test_a_loss_is_noticed_on_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lapse = "   and lease_expires_at <= :now\n"
    monkeypatch.setattr(sqlite_lease, "RECLAIM", sqlite_lease.RECLAIM.replace(lapse, ""))

    with sqlite.opened(tmp_path) as backend:
        found = first_violation(backend, "reclaim-early")

    assert found is not None
    assert "reclaim(LapsedLease(" in readable.failure(found, "sqlite")
