"""A family of schedules: scripts, and every order in which their steps can be taken."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from tenure.values import Enqueued, JobLease, LapsedLease
from tests import model
from tests.schedules.script import LETTERS, NEVER_JOINED, WORDS, Known, call
from tests.schedules.stage import Call, Stage, Transition, Waits


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Scripts that are interleaved, after a beginning that is always the same."""

    name: str
    beginning: tuple[tuple[str, str], ...]
    """(actor, step), one after the other."""
    scripts: Mapping[str, tuple[str, ...]]
    backends: tuple[str, ...] = ("postgres", "sqlite")

    @property
    def letters(self) -> dict[str, str]:
        """How an order names the actors."""
        return dict(zip("abcdef", self.scripts, strict=False))


def family(name: str, beginning: str, /, **scripts: str) -> Family:
    """`beginning` is "actor: step, step; actor: step"; each script "step, step".

    An actor is a worker of its name, on a connection of its own; a name with a number is another
    connection of the same worker.
    """
    steps = [
        (actor.strip(), step.strip())
        for part in beginning.split(";")
        for actor, _, rest in [part.partition(":")]
        for step in rest.split(",")
    ]
    parts = {actor: tuple(s.strip() for s in text.split(",")) for actor, text in scripts.items()}
    made = Family(name=name, beginning=tuple(steps), scripts=parts)
    on_sqlite = not any(map(_joins_what_sqlite_refuses, parts.values()))
    return made if on_sqlite else replace(made, backends=("postgres",))


def _joins_what_sqlite_refuses(script: tuple[str, ...]) -> bool:
    known = Known(queue="q", job_ids=(1, 2, 3))
    is_open = False
    for step in script:
        if step in ("begin", "commit", "rollback"):
            is_open = step == "begin"
        elif is_open:
            word = step[:-2] if step[-2:-1] == " " and step[-1] in LETTERS else step
            assert word in WORDS
            if word == "reclaim" or call(step, known, "x").verb in NEVER_JOINED:
                return True
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one call was answered, at once or when its wait was over."""

    actor: str
    step: str
    call: Call
    said: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """How far a schedule has come."""

    family: Family
    known: Known
    stage: Stage
    places: Mapping[str, int] = field(default_factory=dict)
    """How many steps of its script each actor has taken."""

    @classmethod
    def of(cls, which: Family, queue: str, now: datetime, *, holds_rows: bool) -> Play:
        world = model.World(now=now)
        return cls(
            family=which,
            known=Known(queue=queue),
            stage=Stage(holds_rows=holds_rows, committed=world),
        )

    def next_step(self, actor: str) -> str:
        return self.family.scripts[actor][self.places.get(actor, 0)]

    def movable(self) -> list[str]:
        """The actors that have steps left and wait for nobody.

        Of two who wait, PostgreSQL lets either go on first: while one waits, nobody takes a step
        that would have to wait, too.
        """
        return [
            actor
            for actor in self.family.scripts
            if not self.has_ended(actor)
            and actor not in self.stage.waiting
            and not (self.stage.waiting and self._would_wait(actor))
        ]

    def has_ended(self, actor: str) -> bool:
        return self.places.get(actor, 0) == len(self.family.scripts.get(actor, ()))

    def leftover(self) -> str | None:
        """An actor whose script has ended in an open transaction, once nobody can move."""
        if self.movable():
            return None
        return next(
            (a for a in self.stage.open if self.has_ended(a) and a not in self.stage.waiting), None
        )

    def _would_wait(self, actor: str) -> bool:
        return self.stage.do(actor, self.called(actor, self.next_step(actor)))[1] is Waits

    def called(self, actor: str, step: str) -> Call:
        return call(step, self.known, worker(actor))

    def taken(self, actor: str, said: Any, stage: Stage) -> Play:
        """After a step of an actor's script."""
        places = {**self.places, actor: self.places.get(actor, 0) + 1}
        return replace(self, stage=stage, places=places).told(actor, said)

    def told(self, actor: str, said: Any) -> Play:
        """After an answer was given, at once or late."""
        known = self.known
        if isinstance(said, Enqueued) and said.job_id not in known.job_ids:
            known = replace(known, job_ids=(*known.job_ids, said.job_id))
        for lease in said if isinstance(said, list) else [said]:
            if isinstance(lease, JobLease):
                known = replace(
                    known,
                    tokens={**known.tokens, (lease.worker_id, lease.job_id): lease.token},
                    granted={lease.job_id: lease, **known.granted},
                )
            elif isinstance(lease, LapsedLease):
                known = replace(known, pinned={**known.pinned, worker(actor): lease})
        return self if known is self.known else replace(self, known=known)

    @property
    def transitions(self) -> tuple[Transition, ...]:
        return self.stage.transitions


def worker(actor: str) -> str:
    """The worker_id of an actor."""
    return actor.rstrip("0123456789")


def foreseen(play: Play, actor: str, step: str) -> Play:
    """What the model says will be, with those answered whose wait is over."""
    stage, said = play.stage.do(actor, play.called(actor, step))
    play = play.taken(actor, said, stage)
    if said is not Waits:
        stage, answers = play.stage.answered()
        play = replace(play, stage=stage)
        for waited, late in answers:
            play = play.told(waited, late)
    return play


def begun(which: Family, queue: str, now: datetime, *, holds_rows: bool) -> Play:
    play = Play.of(which, queue, now, holds_rows=holds_rows)
    for actor, step in which.beginning:
        stage, said = play.stage.do(actor, play.called(actor, step))
        play = replace(play, stage=stage).told(actor, said)
    return play


def orders(play: Play) -> Iterator[str]:
    """Every schedule that the model permits, each once, as the letters of its actors."""
    letters = {actor: letter for letter, actor in play.family.letters.items()}

    def follow(at: Play, order: str) -> Iterator[str]:
        at = _freed(at)
        actors = at.movable()
        if not actors:
            yield order
        for actor in actors:
            yield from follow(foreseen(at, actor, at.next_step(actor)), order + letters[actor])

    return follow(play, "")


def _freed(at: Play) -> Play:
    """Where nobody can move, those whose scripts have ended roll back."""
    while (actor := at.leftover()) is not None:
        stage, _ = at.stage.do(actor, Call(verb="rollback"))
        stage, answers = stage.answered()
        at = replace(at, stage=stage)
        for waited, late in answers:
            at = at.told(waited, late)
    return at


def drawn(play: Play, dice: random.Random) -> str:
    """One schedule at random, all alike likely but where actors wait."""
    letters = {actor: letter for letter, actor in play.family.letters.items()}
    order = ""
    while actors := (play := _freed(play)).movable():
        left = [len(play.family.scripts[a]) - play.places.get(a, 0) for a in actors]
        [actor] = dice.choices(actors, left)
        play = foreseen(play, actor, play.next_step(actor))
        order += letters[actor]
    return order
