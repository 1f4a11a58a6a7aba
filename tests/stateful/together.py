"""Asks several databases the same, and holds their answers and their rows against each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from tenure.limits import RETRY_BASE, RETRY_CAP
from tenure.records import JobRecord
from tests.stateful.side import Side

MICROSECOND = timedelta(microseconds=1)
QUEUES = (["a", "b"], ["b", "a"])
Retries = tuple[timedelta | None, timedelta | None]
"""A job's retry_base and retry_cap."""


class Together:
    """The sides, at one time by one clock; the first one's random backoff is everybody's."""

    def __init__(self, sides: Sequence[Side], workers: Iterable[str]) -> None:
        self.sides = sides
        self.jobs: dict[int, JobRecord] = {}
        """As all sides show them."""
        self.differs = False
        """Since a call at which the sides parted."""
        self._workers = tuple(workers)
        self._retries: dict[int, Retries] = {}

    @property
    def now(self) -> datetime:
        return self.sides[0].backend.clock.now

    def advance(self, by: timedelta) -> None:
        for side in self.sides:
            side.backend.clock.advance(by)

    def enrolled(self, number: int, retries: Retries) -> None:
        self._retries.setdefault(number, retries)

    def ask(
        self, call: Callable[[Side], Any], *, in_order: bool = True, backs_off: bool = False
    ) -> Any:
        """The answer that all sides give; what became of their jobs must be the same, too.

        `backs_off`: the call may queue jobs after a random backoff.
        """
        self.differs = True
        answers = [side.answer(call) for side in self.sides]
        sights = [side.jobs() for side in self.sides]
        for answer, sight in zip(answers, sights, strict=True):
            _names_the_due_times(answer, sight)
        dues = self._aligned(sights) if backs_off else {}
        plain = [_with_dues(answer, dues) for answer in answers]
        if not in_order:
            plain = [sorted(a, key=repr) if isinstance(a, list) else a for a in plain]
        self._same("answer", plain)
        self._same("jobs", sights)
        changed = [n for n, job in sights[0].items() if self.jobs.get(n) != job]
        self.jobs = sights[0]
        for number in changed:
            self._same_attempts(number)
        self.differs = False
        return plain[0]

    def look_at_everything(self) -> None:
        """Every read there is answers alike."""
        for number in self.jobs:
            self._same_attempts(number)
        self._same("queues", [side.queues() for side in self.sides])
        for queues in QUEUES:
            found = [side.plane.next_eligible_job_id(queues) for side in self.sides]
            eligible = [n and side.number(n) for n, side in zip(found, self.sides, strict=True)]
            self._same(f"eligible in {queues}", eligible)
        self._same("the first lapsed", [side.plain(side.plane.lapsed(1)) for side in self.sides])
        self._same("lapsed", [side.plain(side.plane.lapsed(10_000)) for side in self.sides])
        for worker_id in self._workers:
            held = [side.plain(side.plane.held(worker_id)) for side in self.sides]
            self._same(f"held by {worker_id}", [sorted(h, key=repr) for h in held])
        self._same("written", [side.written() for side in self.sides])

    def _same_attempts(self, number: int) -> None:
        self._same(f"attempts of {number}", [side.attempts(number) for side in self.sides])

    def _same(self, what: str, found: Sequence[Any]) -> None:
        for side, other in zip(self.sides[1:], found[1:], strict=True):
            if other is not None and other != found[0]:
                first = self.sides[0].name
                raise AssertionError(
                    f"{what} differ:\n  {first}: {_told(found[0], other)}\n"
                    f"  {side.name}: {_told(other, found[0])}"
                )

    def _aligned(self, sights: list[dict[int, JobRecord]]) -> dict[int, datetime]:
        """Give all sides the first one's due times, where all are within the same backoff."""
        dues = {}
        for number, job in sights[0].items():
            due = job.next_attempt_at
            others = [sight.get(number) for sight in sights]
            if due is None or job == self.jobs.get(number):
                continue
            if all(other and self._may_be(number, other, due) for other in others):
                dues[number] = due
                for side, sight in zip(self.sides[1:], sights[1:], strict=True):
                    side.set_due(number, due)
                    sight[number] = dataclasses.replace(sight[number], next_attempt_at=due)
        return dues

    def _may_be(self, number: int, job: JobRecord, due: datetime) -> bool:
        """Whether the job is due then, or by a backoff that may be as long."""
        return job.next_attempt_at == due or self._is_backoff(number, job)

    def _is_backoff(self, number: int, job: JobRecord) -> bool:
        if job.next_attempt_at is None or job.attempt == 0:
            return False
        base, cap = self._retries[number]
        full = min(
            RETRY_CAP if cap is None else cap,
            (RETRY_BASE if base is None else base) * 2 ** min(job.attempt - 1, 30),
        )
        wait = job.next_attempt_at - self.now
        least, most = full * 3 / 4 - MICROSECOND, full + MICROSECOND
        return bool(least <= wait <= most)


def _names_the_due_times(answer: Any, sight: dict[int, JobRecord]) -> None:
    for one in answer if isinstance(answer, list) else [answer]:
        if getattr(one, "next_attempt_at", None) is not None:
            assert one.next_attempt_at == sight[one.job_id].next_attempt_at


def _with_dues(answer: Any, dues: dict[int, datetime]) -> Any:
    """The answer with the due times that all sides were given."""
    if isinstance(answer, list):
        return [_with_dues(member, dues) for member in answer]
    if getattr(answer, "next_attempt_at", None) is None or answer.job_id not in dues:
        return answer
    return answer._replace(next_attempt_at=dues[answer.job_id])


def _told(value: Any, other: Any) -> str:
    """What one side says, without the jobs that are the same on the other."""
    if isinstance(value, dict) and isinstance(other, dict):
        value = {key: member for key, member in value.items() if other.get(key) != member}
    return repr(value)
