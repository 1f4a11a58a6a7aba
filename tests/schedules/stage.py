"""The model where transactions stay open: who sees what, who holds what, who waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from tenure.errors import Busy, TenureError
from tests import model
from tests.model.world import LEASE_FOR, Job, World

Waits = model.Waits

OWNERS = frozenset(
    {"complete", "fail", "release", "acknowledge_cancel", "seal", "update_owned", "guard"}
)
"""Verbs that show (job_id, worker_id, token)."""

EARLY = frozenset({"guard", "enqueue"})
"""Verbs that read the clock before they wait; the others read it when they go on."""

REFUSED = "the commit is refused"
SKIPPED = "skipped"
"""For the rest of a transaction that is void: its application has left the block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One statement of one actor, as `ControlPlane` and the model spell it."""

    verb: str
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A transaction: its own versions of jobs, the rows that it holds besides."""

    jobs: Mapping[int, Job] = field(default_factory=dict)
    locked: frozenset[int] = frozenset()
    verbs: frozenset[str] = frozenset()
    written: int = 0
    until: datetime | None = None
    """After which SQLite refuses its commit."""
    is_void: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    call: Call
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """What the invariants are checked on."""

    before: World
    after: World
    verbs: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One database. Pure: each step gives another stage."""

    holds_rows: bool
    """PostgreSQL; on SQLite an open transaction has the whole file."""
    committed: World
    written: int = 0
    """Rows of the application's own that are committed."""
    open: Mapping[str, Open] = field(default_factory=dict)
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    """By actor, first come first."""
    transitions: tuple[Transition, ...] = ()
    """Of the last step."""

    def view(self, actor: str) -> World:
        """The world as an actor sees it."""
        if not self.open:
            return self.committed
        others = [o for name, o in self.open.items() if name != actor and not o.is_void]
        own = self.open.get(actor)
        jobs = self.committed.jobs if own is None else {**self.committed.jobs, **own.jobs}
        if not self.holds_rows:
            return replace(self.committed, jobs=jobs, busy=bool(others))
        held = frozenset().union(*(o.locked for o in others))
        keys = frozenset(
            (job.queue, job.dedup_key)
            for other in others
            for job_id, version in other.jobs.items()
            for job in (version, self.committed.jobs.get(job_id))
            if job is not None and job.dedup_key is not None and job.is_live
        )
        return replace(self.committed, jobs=jobs, held=held, held_keys=keys)

    def is_in_transaction(self, actor: str) -> bool:
        return actor in self.open

    def do(self, actor: str, call: Call) -> tuple[Stage, Any]:
        """One step. `Waits` as an answer: the actor waits from now on."""
        fresh = replace(self, transitions=()) if self.transitions else self
        own = self.open.get(actor)
        if call.verb == "advance":
            later = model.at(self.committed, self.committed.now + call.arguments[0])
            return replace(fresh, committed=later), None
        if call.verb == "begin":
            return fresh._begun(actor)
        if call.verb == "rollback":
            return fresh._without(actor), None
        if call.verb == "commit":
            return fresh._committed(actor)
        if own is not None and own.is_void:
            return fresh, SKIPPED
        if call.verb == "write":
            assert own is not None
            return fresh._with(actor, replace(own, written=own.written + 1)), None
        if own is not None and self._is_late(own):
            return fresh._voided(actor), Busy
        return fresh._called(actor, call, self.committed.now)

    def answered(self) -> tuple[Stage, list[tuple[str, Any]]]:
        """Let those go on who wait for nobody any more, first come first."""
        stage, answers, again = self, [], True
        while again:
            again = False
            for actor, waiting in list(stage.waiting.items()):
                rest = {a: w for a, w in stage.waiting.items() if a != actor}
                early = waiting.call.verb in EARLY
                instant = waiting.since if early else stage.committed.now
                after, answer = replace(stage, waiting=rest)._called(actor, waiting.call, instant)
                if answer is not Waits:
                    stage, again = after, True
                    answers.append((actor, answer))
                    break
        return stage, answers

    def adopt(self, actor: str, mine: Any, real: Any) -> Stage:
        """Compare an actor's answer with the real one; the stage with the real due times."""
        view = self.view(actor)
        known = model.adopt(view, mine, real)
        return self if known is view else self._stored(actor, view, known)

    def _called(self, actor: str, call: Call, instant: datetime) -> tuple[Stage, Any]:
        view = self.view(actor)
        if view.now != instant:
            view = replace(view, now=instant)
        after, answer = getattr(model, call.verb)(view, *call.arguments, **call.options)
        if answer is Waits:
            waiting = {**self.waiting, actor: Waiting(call=call, since=instant)}
            return replace(self, waiting=waiting), answer
        own = self.open.get(actor)
        stage = self
        if after is not view:
            step = Transition(before=view, after=after, verbs=frozenset({call.verb}))
            stage = replace(self, transitions=(*self.transitions, step))
        if own is None:
            return stage._stored(actor, view, after), answer
        if isinstance(answer, type) and issubclass(answer, TenureError):
            # PostgreSQL lets go of everything at the error, not at the ROLLBACK.
            return stage._voided(actor), answer
        own = replace(
            own,
            locked=own.locked | _locked(view, after, call),
            verbs=own.verbs | {call.verb},
            until=instant + LEASE_FOR / 3
            if call.verb == "guard" and not self.holds_rows
            else own.until,
        )
        return stage._with(actor, own)._stored(actor, view, after), answer

    def _stored(self, actor: str, before: World, after: World) -> Stage:
        if after is before:
            return self
        changed = {j: job for j, job in after.jobs.items() if before.jobs.get(j) is not job}
        own = self.open.get(actor)
        if own is not None:
            return self._with(actor, replace(own, jobs={**own.jobs, **changed}))
        committed = replace(
            self.committed, jobs={**self.committed.jobs, **changed}, paused=after.paused
        )
        return replace(self, committed=committed)

    def _begun(self, actor: str) -> tuple[Stage, Any]:
        others = [o for o in self.open.values() if not o.is_void]
        if not self.holds_rows and others:
            return self._voided(actor), Busy
        return self._with(actor, Open()), None

    def _committed(self, actor: str) -> tuple[Stage, Any]:
        own = self.open[actor]
        if own.is_void:
            return self._without(actor), SKIPPED
        if self._is_late(own):
            return self._without(actor), REFUSED
        after = replace(self.committed, jobs={**self.committed.jobs, **own.jobs})
        step = Transition(before=self.committed, after=after, verbs=own.verbs)
        stage = self._without(actor)
        return replace(
            stage,
            committed=after,
            written=stage.written + own.written,
            transitions=(*stage.transitions, step),
        ), None

    def _is_late(self, own: Open) -> bool:
        return own.until is not None and self.committed.now > own.until

    def _with(self, actor: str, own: Open) -> Stage:
        return replace(self, open={**self.open, actor: own})

    def _without(self, actor: str) -> Stage:
        return replace(self, open={a: o for a, o in self.open.items() if a != actor})

    def _voided(self, actor: str) -> Stage:
        return self._with(actor, Open(is_void=True))


def _locked(before: World, after: World, call: Call) -> frozenset[int]:
    """The rows that a call holds to the end of its transaction, changed or not."""
    changed = {j for j, job in after.jobs.items() if before.jobs.get(j) is not job}
    if call.verb in OWNERS:
        job_id, worker_id, token = call.arguments[:3]
        shown = [(job_id, worker_id, token)]
    elif call.verb == "settle":
        worker_id, outcomes = call.arguments
        shown = [(o.job_id, worker_id, o.token) for o in outcomes]
    elif call.verb == "renew":
        worker_id, leases = call.arguments
        shown = [(job_id, worker_id, token) for job_id, token in leases]
    else:
        shown = []
        if call.verb in ("cancel", "retry"):
            job = before.jobs.get(call.arguments[0])
            if job is not None and job.is_live:
                changed.add(job.job_id)
    for lease in shown:
        if before.owned(*lease) is not None and not before.is_held(lease[0]):
            changed.add(lease[0])
    return frozenset(changed)
