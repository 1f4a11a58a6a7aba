"""Takes the steps of one schedule for real, and compares each with the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from tenure.values import Enqueued
from tests import model
from tests.model import Disagreement, Waits
from tests.schedules import rows
from tests.schedules.play import Family, Play
from tests.schedules.rows import Row
from tests.schedules.stage import SKIPPED, Call
from tests.schedules.words import word

START = datetime.fromisoformat("2031-05-06 07:08:09.123456+00:00")


class Backend(Protocol):
    """Where schedules are performed."""

    name: str
    holds_rows: bool

    def set_clock(self, now: datetime) -> None: ...

    def do(self, actor: str, call: Call, queue: str, *, waits: bool) -> Any:
        """The answer, or `Waits`. `waits` is what the model expects."""
        ...

    def late(self, actor: str) -> Any:
        """The answer of a call that waited."""
        ...

    def has_gone_on(self, actor: str) -> bool:
        """Whether a call that waits has been answered all the same."""
        ...

    def rows(self, job_ids: Sequence[int], queue: str) -> list[Row]: ...

    def clear(self, job_ids: Sequence[int]) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One step as it went, for people."""

    actor: str
    call: Call
    now: datetime
    said: str


@dataclass(slots=True, kw_only=True)
class Performance:
    """What came of one schedule."""

    family: Family
    order: str
    queue: str
    lines: list[Line] = field(default_factory=list)
    steps: int = 0
    blocked: int = 0
    words: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)


class Theatre:
    """Performs one schedule after the other; time goes on from one to the next."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._now = START
        self._number = 0

    def perform(self, family: Family, order: str) -> Performance:
        self._number += 1
        self._now += timedelta(seconds=1)
        done = Performance(family=family, order=order, queue=f"{family.name} {self._number}")
        act = _Act(self._backend, done, self._now)
        try:
            act.run()
        except Disagreement as difference:
            done.violations.append(str(difference))
        finally:
            self._now = act.play.stage.committed.now
            live = [j.job_id for j in act.play.stage.committed.jobs.values() if j.is_live]
            self._backend.clear(list(act.play.known.job_ids) if done.violations else live)
        return done


class _Act:
    def __init__(self, backend: Backend, done: Performance, now: datetime) -> None:
        self._backend = backend
        self._done = done
        self.play = Play.of(done.family, done.queue, now, holds_rows=backend.holds_rows)
        backend.set_clock(now)

    def run(self) -> None:
        family, done = self._done.family, self._done
        for actor, step in family.beginning:
            self._step(actor, step, counted=False)
        for letter in done.order:
            self._free()
            actor = family.letters[letter]
            if actor not in self.play.movable():
                raise Disagreement(f"{actor} cannot move: the order is none of this family")
            self._step(actor, self.play.next_step(actor))
        self._free()
        if self.play.movable():
            raise Disagreement("the order ends too early")

    def _step(self, actor: str, step: str, *, counted: bool = True) -> None:
        self._call(actor, self.play.called(actor, step), step, counted=counted)

    def _call(self, actor: str, call: Call, step: str | None, *, counted: bool) -> None:
        before = self.play.stage
        stage, mine = before.do(actor, call)
        real = mine
        if call.verb == "advance":
            self._backend.set_clock(stage.committed.now)
        elif mine is not SKIPPED or call.verb == "commit":
            real = self._backend.do(actor, call, self._done.queue, waits=mine is Waits)
        if isinstance(real, Enqueued) and real.created and mine is not Waits:
            stage, mine = before.do(actor, _made(call, real))
        self._note(actor, call, real, counted)
        if (mine is Waits) != (real is Waits):
            raise Disagreement(
                f"answered {word(real, call.verb)}, the model says {word(mine, call.verb)}"
            )
        if mine is not Waits:
            stage = stage.adopt(actor, mine, real)
        taken = self.play.taken if counted and step is not None else _told(self.play)
        self.play = taken(actor, real, stage)
        self._answer_those_who_waited()
        self._compare()

    def _answer_those_who_waited(self) -> None:
        before = self.play.stage
        _, foreseen = before.answered()
        if not foreseen:
            return
        real = {actor: self._backend.late(actor) for actor, _ in foreseen}
        waiting = {
            actor: replace(w, call=_made(w.call, real[actor]))
            if isinstance(real.get(actor), Enqueued) and real[actor].created
            else w
            for actor, w in before.waiting.items()
        }
        stage, answers = replace(before, waiting=waiting).answered()
        self.play = replace(self.play, stage=stage)
        for actor, mine in answers:
            self._note(actor, before.waiting[actor].call, real[actor], counted=True, late=True)
            stage = self.play.stage.adopt(actor, mine, real[actor])
            self.play = replace(self.play, stage=stage).told(actor, real[actor])

    def _compare(self) -> None:
        stage = self.play.stage
        # What an open transaction has made must not be seen.
        job_ids = set(stage.committed.jobs).union(*(o.jobs for o in stage.open.values()))
        found = self._backend.rows(sorted(job_ids), self._done.queue)
        wrong = rows.differences(stage.committed, stage.written, found)
        for actor, waiting in stage.waiting.items():
            if self._backend.has_gone_on(actor):
                wrong.append(f"{waiting.call.verb} of {actor} goes on, the model says it waits")
        for step in stage.transitions:
            wrong += model.broken(step.before, step.after, *step.verbs)
        if wrong:
            raise Disagreement("; ".join(wrong))

    def _free(self) -> None:
        """Where nobody can move, or at the end, those whose scripts have ended roll back."""
        while (actor := self.play.leftover()) is not None:
            self._call(actor, Call(verb="rollback"), None, counted=False)

    def _note(self, actor: str, call: Call, real: Any, counted: bool, late: bool = False) -> None:
        said = word(real, call.verb)
        self._done.lines.append(
            Line(
                actor=actor,
                call=call,
                now=self.play.stage.committed.now,
                said=f"has waited: {said}" if late else said,
            )
        )
        if not counted:
            return
        if real is Waits:
            self._done.blocked += 1
        elif said:
            self._done.words[f"{call.verb}: {said}"] += 1
        if not late:
            self._done.steps += 1


def _told(play: Play) -> Any:
    return lambda actor, said, stage: replace(play, stage=stage).told(actor, said)


def _made(call: Call, real: Enqueued) -> Call:
    return replace(call, options={**call.options, "job_id": real.job_id})
