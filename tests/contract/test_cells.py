"""Every verb in every state, against the table in cells.txt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tenure.control_plane import ControlPlane
from tenure.errors import CancelRequested, JobUnknown, LeaseLost
from tenure.records import AttemptRecord, JobRecord, Records
from tenure.values import JobStatus, LapsedLease, LeaseRenewal, Outcome, Settled, Verb, Verdict
from tests.contract.backends import Backend
from tests.contract.scenario import (
    BROKEN,
    BROKEN_FOR_GOOD,
    LEASE_FOR,
    SECOND,
    STATES,
    Scene,
    Shown,
)

TABLE = Path(__file__).with_name("cells.txt").read_text(encoding="utf-8")
MOVER = "cleo"
LATE = {"guard": "LeaseLost", "guard anyway": "LeaseLost"} | dict.fromkeys(
    ("sweep", "claim_job", "reclaim"), "nothing"
)


@dataclass(frozen=True, slots=True)
class Cell:
    """What one verb does in one state, as the table writes it."""

    answer: str
    job: str
    due: str = "-"
    row: str = "-"
    error: str = ""


def cells(table: str) -> dict[str, dict[str, Cell]]:
    blocks: dict[str, dict[str, Cell]] = {}
    for block in table.split("\n== ")[1:]:
        title, *lines = block.strip().splitlines()
        state, _, model = title.partition(", as ")
        given = {}
        for line in lines:
            verb, *columns = re.split(r"  +", line)
            given[verb] = Cell(*columns)
        if model:
            given = blocks[model] | given
        others = given.pop("others", None)
        if others is not None:
            late = {verb: replace(others, answer=LATE.get(verb, "lost")) for verb in VERBS}
            given = late | given
        blocks[state] = given
    return blocks


@dataclass(frozen=True, slots=True)
class Act:
    """One call of one verb, by a caller that shows a lease."""

    backend: Backend
    shown: Shown

    @property
    def plane(self) -> ControlPlane:
        return self.backend.control_plane

    @property
    def lease(self) -> tuple[int, str, int]:
        return self.shown.job_id, self.shown.worker_id, self.shown.token

    def job(self) -> JobRecord | None:
        return self.backend.records.job(self.shown.job_id)

    def settled(self, answer: Settled) -> str:
        job = self.job()
        assert (answer.job_id, answer.token) == (self.shown.job_id, self.shown.token)
        assert answer.status == (job.status if job else None)
        due = None
        if answer.verdict in (Verdict.OK, Verdict.ALREADY) and job is not None:
            due = job.next_attempt_at if job.status is JobStatus.QUEUED else None
        assert answer.next_attempt_at == due
        return answer.verdict


def complete(act: Act) -> str:
    return act.settled(act.plane.complete(*act.lease, {"given": True}))


def fail(act: Act) -> str:
    return act.settled(act.plane.fail(*act.lease, BROKEN))


def fail_for_good(act: Act) -> str:
    return act.settled(act.plane.fail(*act.lease, BROKEN_FOR_GOOD))


def release_started(act: Act) -> str:
    return act.settled(act.plane.release(*act.lease, started=True))


def release_unstarted(act: Act) -> str:
    return act.settled(act.plane.release(*act.lease, started=False))


def acknowledge(act: Act) -> str:
    return act.settled(act.plane.acknowledge_cancel(*act.lease))


def seal(act: Act) -> str:
    return act.settled(act.plane.seal(*act.lease, {"sealed again": True}))


def update(act: Act) -> str:
    return act.settled(act.plane.update_owned(*act.lease, progress=50))


def update_anyway(act: Act) -> str:
    return act.settled(
        act.plane.update_owned(*act.lease, progress=50, require_cancel_not_requested=False)
    )


def renew(act: Act) -> str:
    shown = act.shown
    [renewal] = act.plane.renew(shown.worker_id, [(shown.job_id, shown.token)], lease_for=LEASE_FOR)
    assert (renewal.job_id, renewal.token) == (shown.job_id, shown.token)
    job = act.job()
    if renewal.outcome is LeaseRenewal.RENEWED:
        assert job is not None
        assert renewal.lease_expires_at == job.lease_expires_at
        assert renewal.cancel_requested == job.cancel_requested
        return "renewed, cancel" if renewal.cancel_requested else "renewed"
    assert renewal.lease_expires_at is None
    assert not renewal.cancel_requested
    return renewal.outcome


def guard(act: Act, *, anyway: bool = False) -> str:
    try:
        with act.backend.transaction() as caller:
            caller.control_plane.guard(*act.lease, require_cancel_not_requested=not anyway)
    except (LeaseLost, CancelRequested) as refusal:
        return type(refusal).__name__
    return "passes"


def guard_anyway(act: Act) -> str:
    return guard(act, anyway=True)


def sweep(act: Act) -> str:
    found = [s for s in act.plane.sweep(MOVER) if s.job_id == act.shown.job_id]
    if not found:
        return "nothing"
    [swept] = found
    job = act.job()
    assert job is not None
    assert (swept.token, swept.status) == (job.token - 1, job.status)
    queued = job.status is JobStatus.QUEUED
    assert swept.next_attempt_at == (job.next_attempt_at if queued else None)
    return swept.outcome


def claim_job(act: Act) -> str:
    lease = act.plane.claim_job(act.shown.job_id, MOVER)
    return "leased" if lease else "nothing"


def reclaim(act: Act) -> str:
    shown = act.shown
    pinned = LapsedLease(
        job_id=shown.job_id,
        worker_id=shown.worker_id,
        token=shown.token,
        lease_expires_at=shown.lease_expires_at,
    )
    return "leased" if act.plane.reclaim(pinned, MOVER) else "nothing"


def operated(act: Act, verb: str) -> str:
    try:
        answer = getattr(act.plane, verb)(act.shown.job_id)
    except JobUnknown:
        return "JobUnknown"
    job = act.job()
    assert job is not None
    assert (answer.job_id, answer.status, answer.holder_pid) == (job.job_id, job.status, None)
    return str(answer.verdict)


def cancel(act: Act) -> str:
    return operated(act, "cancel")


def retry(act: Act) -> str:
    return operated(act, "retry")


def one(verb: Verb, **options: Any) -> Callable[[Act], str]:
    """The same verb as the only one of a settle."""

    def settle(act: Act) -> str:
        outcome = Outcome(job_id=act.shown.job_id, token=act.shown.token, verb=verb, **options)
        [answer] = act.plane.settle(act.shown.worker_id, [outcome])
        return act.settled(answer)

    return settle


VERBS: dict[str, tuple[Callable[[Act], str], ...]] = {
    "complete": (complete, one(Verb.COMPLETE, result={"given": True})),
    "fail": (fail, one(Verb.FAIL, failure=BROKEN)),
    "fail for good": (fail_for_good, one(Verb.FAIL, failure=BROKEN_FOR_GOOD)),
    "release started": (release_started, one(Verb.RELEASE, started=True)),
    "release unstarted": (release_unstarted, one(Verb.RELEASE, started=False)),
    "acknowledge": (acknowledge, one(Verb.ACKNOWLEDGE_CANCEL)),
    "seal": (seal,),
    "update": (update,),
    "update anyway": (update_anyway,),
    "renew": (renew,),
    "guard": (guard,),
    "guard anyway": (guard_anyway,),
    "sweep": (sweep,),
    "claim_job": (claim_job,),
    "reclaim": (reclaim,),
    "cancel": (cancel,),
    "retry": (retry,),
}
"""Each verb, and the same through settle where settle has it."""

CELLS = cells(TABLE)


@dataclass(frozen=True, slots=True)
class Sight:
    """A job and its attempt rows, as they stand."""

    job: JobRecord | None
    attempts: tuple[AttemptRecord, ...]

    @classmethod
    def of(cls, records: Records, job_id: int) -> Sight:
        return cls(records.job(job_id), tuple(records.attempts(job_id)))


def seen(before: Sight, after: Sight, now: datetime) -> tuple[str, str, str, str]:
    """The job, due, row and error columns for what became of a job."""
    if after == before:
        return "unchanged", "-", "-", ""
    job = after.job
    assert job is not None
    new = [a for a in after.attempts if a not in before.attempts]
    assert len(after.attempts) == len(before.attempts) + len(new) <= len(before.attempts) + 1
    row = "".join(f"t{a.token} {a.verb} {a.outcome}" for a in new) or "-"
    due = "-"
    if job.status is JobStatus.QUEUED:
        assert job.next_attempt_at is not None
        due = waits(job, now)
    error = f'"{job.last_error}"' if job.last_error else ""
    return described(job), due, row, error


def described(job: JobRecord) -> str:
    words = [str(job.status), f"{job.attempt}/{job.max_attempts}", f"t{job.token}"]
    if job.status in (JobStatus.QUEUED, JobStatus.RUNNING):
        flags = {
            "sealed": job.sealed_at is not None,
            "cancel": job.cancel_requested,
            "buffered": job.buffered,
            "solo": job.solo,
        }
        words += [flag for flag, on in flags.items() if on]
    return " ".join(words)


def waits(job: JobRecord, now: datetime) -> str:
    assert job.next_attempt_at is not None
    wait = job.next_attempt_at - now
    full = 5 * SECOND * 2 ** (job.attempt - 1)
    if wait == timedelta(0):
        return "now"
    return "backoff" if full * 0.75 <= wait <= full else str(wait)


def consistent(before: Sight, after: Sight, verb: str, shown: Shown, now: datetime) -> None:
    """What holds in every cell that changed anything."""
    was, job = before.job, after.job
    if was is None or job is None or before == after:
        return
    assert (job.progress, job.payload, job.dedup_key) == (
        50 if verb.startswith("update") else was.progress,
        was.payload,
        was.dedup_key,
    )
    for row in after.attempts:
        if row not in before.attempts:
            assert (row.worker_id, row.attempt) == (was.worker_id, was.attempt)
            assert (row.started_at, row.ended_at) == (was.claimed_at, now)
    if job.status is JobStatus.RUNNING:
        assert None not in (job.worker_id, job.claimed_at, job.lease_expires_at)
        assert job.finished_at is None
    elif job.status is JobStatus.QUEUED:
        assert (job.worker_id, job.claimed_at, job.lease_expires_at) == (None, None, None)
        assert job.finished_at is None
        assert job.sealed_at is None
    else:
        assert job.finished_at == now
        queued = was.status is JobStatus.QUEUED
        ender = None if queued else MOVER if verb == "sweep" else shown.worker_id
        assert job.worker_id == ender
    if job.status is JobStatus.COMPLETED:
        assert job.result == ({"sealed": True} if was.sealed_at else {"given": True})


def every_way() -> Iterator[tuple[str, str]]:
    for verb, ways in VERBS.items():
        yield from ((verb, "itself"), (verb, "settle"))[: len(ways)]


@pytest.mark.parametrize("state", STATES)
def test_every_verb_does_what_the_table_says(backend: Backend, state: str) -> None:
    clock, wrong = backend.clock, []
    for verb, way in every_way():
        act = VERBS[verb][way == "settle"]
        shown = STATES[state](Scene(backend.control_plane, clock))
        before = Sight.of(backend.records, shown.job_id)
        clock.advance(SECOND)

        answer = act(Act(backend, shown))

        after = Sight.of(backend.records, shown.job_id)
        consistent(before, after, verb, shown, clock.now)
        cell = CELLS[state][verb]
        job, due, row, error = seen(before, after, clock.now)
        found = Cell(answer, job, due, row, error if cell.error else "")
        if found != cell:
            wrong.append(f"{verb} by {way}: {found}, but the table says {cell}")
    assert wrong == []


def test_the_table_has_a_cell_for_every_verb_in_every_state() -> None:
    assert {state: set(given) for state, given in CELLS.items()} == {
        state: set(VERBS) for state in STATES
    }
