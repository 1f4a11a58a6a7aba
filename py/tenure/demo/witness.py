"""A control plane that tells the driver what was answered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from tenure.backing import Backing, Plane
from tenure.demo.stage import Point, Stage
from tenure.sleeper import Sleeper
from tenure.values import Outcome, Settled, Verb, Verdict


@dataclass(frozen=True, slots=True)
class Lent:
    """A lease by its numbers."""

    job_id: int
    token: int


class WitnessedBacking:
    """Opens planes whose answers are told; everything else is the backing's own."""

    def __init__(self, backing: Backing, stage: Stage) -> None:
        self._backing = backing
        self._stage = stage
        # One call at a time: whoever waits at Point.SEALING to be stopped must not be stopped
        # while another thread of the process holds the file's write lock, or a row's.
        self._one_call = threading.Lock()

    def open(self) -> Plane:
        return cast(Plane, _Witness(self._backing.open(), self._stage, self._one_call))

    def check(self) -> None:
        self._backing.check()

    def sleeper(
        self, queues: Sequence[str], *, poll_floor: timedelta, on_cancel: Callable[[int], None]
    ) -> Sleeper:
        return self._backing.sleeper(queues, poll_floor=poll_floor, on_cancel=on_cancel)


class _Witness:
    def __init__(self, plane: Plane, stage: Stage, one_call: threading.Lock) -> None:
        self._plane = plane
        self._stage = stage
        self._one_call = one_call

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._plane, name)
        if not callable(found):
            return found

        def called(*arguments: Any, **options: Any) -> Any:
            with self._one_call:
                answer = found(*arguments, **options)
            if isinstance(answer, Settled):
                self._tell(name, answer)
            return answer

        return called

    def seal(self, job_id: int, worker_id: str, token: int, result: Any = None) -> Settled:
        with self._one_call:
            if self._stage.is_held(job_id, token):
                self._stage.wait(Point.SEALING, Lent(job_id, token))
            settled = self._plane.seal(job_id, worker_id, token, result)
        self._tell("seal", settled)
        return settled

    def settle(self, worker_id: str, outcomes: Sequence[Outcome]) -> list[Settled]:
        verbs = {(outcome.job_id, outcome.token): outcome.verb for outcome in outcomes}
        with self._one_call:
            answers = self._plane.settle(worker_id, outcomes)
        for answer in answers:
            self._tell(verbs[answer.job_id, answer.token], answer)
        return answers

    def _tell(self, verb: str, settled: Settled) -> None:
        if settled.verdict is Verdict.LOST:
            self._stage.tell("refused", settled, verb=verb)
        elif settled.verdict is Verdict.OK and verb == Verb.COMPLETE:
            self._stage.tell("completed", settled)
