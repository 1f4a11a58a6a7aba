"""The figures are counted truly, and a wrong one is noticed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tenure.demo.crew import Heard
from tenure.demo.report import Figures, broken_promises, figures
from tenure.demo.scenario import Story
from tenure.sqlite_store import SqliteStore
from tenure.store import open_store

QUEUE = "demo"
FACTS = {"module": "m", "lines": 3, "fault": None}


@pytest.fixture
def story(tmp_path: Path) -> tuple[SqliteStore, Story, Heard]:
    """A run in which all went as promised, told by hand: four jobs, one of each fate."""
    store = open_store(str(tmp_path / "demo.db"))
    assert isinstance(store, SqliteStore)
    with closing(store.control_plane()) as plane:
        healed, stale, running, queued = (plane.enqueue(QUEUE, "analyse").job_id for _ in range(4))
        leases = {job_id: plane.claim_job(job_id, "w") for job_id in (healed, stale, running)}
        sealed, late, stopping = (lease.token for lease in leases.values() if lease is not None)
        plane.seal(healed, "w", sealed, FACTS)
        plane.cancel(running)
        plane.acknowledge_cancel(running, "w", stopping)
        plane.cancel(queued)
        _lapse(store)
        plane.sweep("sweeper")
        _make_due(store)
        again = plane.claim_job(stale, "other")
        assert again is not None
        plane.complete(stale, "other", again.token, FACTS)
        plane.seal(stale, "w", late, FACTS)
    heard = Heard()
    heard.started.update([healed, stale, stale, running])
    heard.completed.update([stale])
    heard.refused.append((stale, late, "seal"))
    told = Story(
        enqueued=4, healed=healed, stale=stale, cancelled_running=running, cancelled_queued=queued
    )
    return store, told, heard


def _lapse(store: SqliteStore) -> None:
    _edit(store, "update tenure_job set lease_expires_at = 0 where status = 'running'")


def _make_due(store: SqliteStore) -> None:
    _edit(store, "update tenure_job set next_attempt_at = 0 where status = 'queued'")


def _edit(store: SqliteStore, statement: str) -> None:
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute(statement)


def test_the_figures_are_those_of_the_queue(story: tuple[SqliteStore, Story, Heard]) -> None:
    store, told, heard = story
    found = figures(store.records(), QUEUE, heard)
    assert found == Figures(
        enqueued=4,
        completed=2,
        cancelled=2,
        others=0,
        attempts=4,
        recovered=2,
        healed=1,
        twice=0,
        refused=1,
        unparsed=0,
        largest=[FACTS, FACTS],
    )
    assert broken_promises(found, told, store.records(), heard) == []
    store.close()


@pytest.mark.parametrize(
    ("spoil", "promise"),
    [
        (lambda h, s: h.completed.update([s.stale]), "no completion was accepted twice"),
        (lambda h, s: h.completed.update([s.healed]), "no completion was accepted twice"),
        (lambda h, s: h.started.update([s.healed]), "its handler started once"),
        (lambda h, s: h.refused.clear(), "what the stopped worker wrote was refused"),
    ],
)
def test_what_the_workers_heard_amiss_is_noticed(
    story: tuple[SqliteStore, Story, Heard], spoil: Callable[[Heard, Story], object], promise: str
) -> None:
    store, told, heard = story
    spoil(heard, told)
    found = figures(store.records(), QUEUE, heard)
    assert any(promise in broken for broken in broken_promises(found, told, store.records(), heard))
    store.close()


@pytest.mark.parametrize(
    ("figure", "promise"),
    [
        ("enqueued", "every job that was enqueued is in the queue's records"),
        ("others", "every job has completed or was cancelled"),
        ("cancelled", "the two jobs that were cancelled are, and no other"),
        ("recovered", "the leases of the killed and of the stopped worker were recovered"),
        ("twice", "no completion was accepted twice"),
        ("completed", "every completed job has its facts"),
    ],
)
def test_a_wrong_figure_is_noticed(
    story: tuple[SqliteStore, Story, Heard], figure: str, promise: str
) -> None:
    store, told, heard = story
    found = figures(store.records(), QUEUE, heard)
    change: dict[str, Any] = {figure: 1}
    wrong = replace(found, **change)
    assert promise in broken_promises(wrong, told, store.records(), heard)
    store.close()
