"""The words of which actors' scripts are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from tenure.values import Failure, JobLease, LapsedLease, Outcome, Verb
from tests.model.world import LEASE_FOR
from tests.schedules.stage import Call

BROKEN = Failure(error_type="ValueError", message="broken")
BROKEN_FOR_GOOD = Failure(error_type="ValueError", message="broken", retryable=False)
KEY = "the key"
NEVER = 2**62
"""The id of a job that is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the actors have been told so far."""

    queue: str
    job_ids: tuple[int, ...] = ()
    """The jobs a, b, … in the order in which they were made."""
    tokens: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """The last token that each worker was granted, by (worker_id, job_id)."""
    pinned: Mapping[str, LapsedLease] = field(default_factory=dict)
    """The lapsed lease that each worker has read of."""
    granted: Mapping[int, JobLease] = field(default_factory=dict)
    """The first lease of each job: what somebody pins who has read of no other."""

    def job(self, letter: str) -> int:
        place = "abc".index(letter)
        return self.job_ids[place] if place < len(self.job_ids) else NEVER

    def lease(self, worker_id: str, letter: str) -> tuple[int, str, int]:
        """What a worker shows, rightly or not; token 0 if it never had one."""
        job_id = self.job(letter)
        return job_id, worker_id, self.tokens.get((worker_id, job_id), 0)

    def late(self, letter: str) -> tuple[int, str, int]:
        """What the first worker that had the job shows, whoever has it now."""
        job_id = self.job(letter)
        first = self.granted.get(job_id)
        return (job_id, "nobody", 0) if first is None else (job_id, first.worker_id, first.token)

    def pins(self, worker_id: str, letter: str) -> LapsedLease:
        pinned = self.pinned.get(worker_id)
        if pinned is not None and pinned.job_id == self.job(letter):
            return pinned
        lease = self.granted.get(self.job(letter))
        assert lease is not None, "nobody has been granted what is to be reclaimed"
        return LapsedLease(**{n: getattr(lease, n) for n in LapsedLease.__dataclass_fields__})


Word = Callable[[Known, str, str], Call]
"""Makes the call of a worker about the job of a letter."""


def _owner(verb: str, *more: Any, **options: Any) -> Word:
    return lambda known, worker_id, letter: Call(
        verb=verb, arguments=(*known.lease(worker_id, letter), *more), options=options
    )


def _late(verb: str, *more: Any, **options: Any) -> Word:
    return lambda known, worker_id, letter: Call(
        verb=verb, arguments=(*known.late(letter), *more), options=options
    )


def _late_renew(known: Known, worker_id: str, letter: str) -> Call:
    job_id, first, token = known.late(letter)
    return Call(verb="renew", arguments=(first, [(job_id, token)]))


def _late_settle(known: Known, worker_id: str, letter: str) -> Call:
    job_id, first, token = known.late(letter)
    outcome = Outcome(job_id=job_id, token=token, verb=Verb.COMPLETE, result=0)
    return Call(verb="settle", arguments=(first, [outcome]))


def _complete(known: Known, worker_id: str, letter: str) -> Call:
    lease = known.lease(worker_id, letter)
    return Call(verb="complete", arguments=(*lease, lease[2]))


def _seal(known: Known, worker_id: str, letter: str) -> Call:
    lease = known.lease(worker_id, letter)
    return Call(verb="seal", arguments=(*lease, 100 + lease[2]))


def _update(known: Known, worker_id: str, letter: str) -> Call:
    lease = known.lease(worker_id, letter)
    return Call(verb="update_owned", arguments=lease, options={"progress": lease[2]})


def _renew(known: Known, worker_id: str, letter: str) -> Call:
    job_id, _, token = known.lease(worker_id, letter)
    return Call(verb="renew", arguments=(worker_id, [(job_id, token)]))


def _renew_both(known: Known, worker_id: str, letter: str) -> Call:
    leases = [known.lease(worker_id, one) for one in "ab"]
    return Call(
        verb="renew", arguments=(worker_id, [(job_id, token) for job_id, _, token in leases])
    )


def _claim(max_jobs: int, **options: Any) -> Word:
    return lambda known, worker_id, letter: Call(
        verb="claim", arguments=([known.queue], worker_id), options={"max_jobs": max_jobs} | options
    )


def _claim_job(known: Known, worker_id: str, letter: str) -> Call:
    return Call(verb="claim_job", arguments=(known.job(letter), worker_id))


def _reclaim(known: Known, worker_id: str, letter: str) -> Call:
    return Call(verb="reclaim", arguments=(known.pins(worker_id, letter), worker_id))


def _settle(*outcomes: tuple[str, Verb]) -> Word:
    def call(known: Known, worker_id: str, letter: str) -> Call:
        leases = [(known.lease(worker_id, one), verb) for one, verb in outcomes]
        return Call(
            verb="settle",
            arguments=(
                worker_id,
                [
                    Outcome(
                        job_id=job_id,
                        token=token,
                        verb=verb,
                        result=token if verb is Verb.COMPLETE else None,
                        failure=BROKEN if verb is Verb.FAIL else None,
                        started=False,
                    )
                    for (job_id, _, token), verb in leases
                ],
            ),
        )

    return call


def _enqueue(**options: Any) -> Word:
    return lambda known, worker_id, letter: Call(
        verb="enqueue", arguments=(known.queue, "work"), options=options
    )


def _operate(verb: str, **options: Any) -> Word:
    return lambda known, worker_id, letter: Call(
        verb=verb, arguments=(known.job(letter),), options=options
    )


def _queue(verb: str) -> Word:
    return lambda known, worker_id, letter: Call(verb=verb, arguments=(known.queue,))


def _bare(verb: str, *arguments: Any) -> Word:
    return lambda known, worker_id, letter: Call(verb=verb, arguments=arguments)


def _mine(verb: str) -> Word:
    return lambda known, worker_id, letter: Call(verb=verb, arguments=(worker_id,))


WORDS: dict[str, Word] = {
    "begin": _bare("begin"),
    "commit": _bare("commit"),
    "rollback": _bare("rollback"),
    "write": _bare("write"),
    "lapse": _bare("advance", LEASE_FOR),
    "hour": _bare("advance", timedelta(hours=1)),
    "enqueue": _enqueue(),
    "enqueue once": _enqueue(max_attempts=1),
    "enqueue twice": _enqueue(max_attempts=2),
    "enqueue timed": _enqueue(timeout=timedelta(seconds=45)),
    "enqueue keyed": _enqueue(dedup_key=KEY),
    "claim": _claim(1),
    "claim 2": _claim(2),
    "claim 2 but solo": _claim(2, solo=False),
    "claim_job": _claim_job,
    "candidate": lambda known, worker_id, letter: Call(
        verb="next_eligible_job_id", arguments=([known.queue],)
    ),
    "lapsed": _bare("lapsed"),
    "reclaim": _reclaim,
    "renew": _renew,
    "renew both": _renew_both,
    "held": _mine("held"),
    "update": _update,
    "update anyway": lambda known, worker_id, letter: Call(
        verb="update_owned",
        arguments=known.lease(worker_id, letter),
        options={"progress": 7, "lease_for": LEASE_FOR, "require_cancel_not_requested": False},
    ),
    "guard": _owner("guard"),
    "guard anyway": _owner("guard", require_cancel_not_requested=False),
    "seal": _seal,
    "complete": _complete,
    "fail": _owner("fail", BROKEN),
    "fail for good": _owner("fail", BROKEN_FOR_GOOD),
    "fail now": _owner("fail", BROKEN, delay=timedelta(0)),
    "release": _owner("release", started=True),
    "give back": _owner("release", started=False),
    "acknowledge": _owner("acknowledge_cancel"),
    "settle": _settle(("a", Verb.COMPLETE), ("b", Verb.FAIL)),
    "settle back": _settle(("b", Verb.RELEASE), ("a", Verb.ACKNOWLEDGE_CANCEL)),
    "late renew": _late_renew,
    "late update": _late("update_owned", progress=0),
    "late guard": _late("guard"),
    "late seal": _late("seal", 0),
    "late complete": _late("complete", 0),
    "late fail": _late("fail", BROKEN),
    "late release": _late("release", started=False),
    "late acknowledge": _late("acknowledge_cancel"),
    "late settle": _late_settle,
    "sweep": _mine("sweep"),
    "cancel": _operate("cancel"),
    "requested": _operate("cancel_requested"),
    "retry": _operate("retry"),
    "retry twice": _operate("retry", attempts=2),
    "pause": _queue("pause"),
    "resume": _queue("resume"),
}

LETTERS = frozenset("abc")


def call(step: str, known: Known, worker_id: str) -> Call:
    """The call of one step: a word, or a word with the letter of another job than a."""
    word, letter = step, "a"
    if step[-2:-1] == " " and step[-1] in LETTERS:
        word, letter = step[:-2], step[-1]
    return WORDS[word](known, worker_id, letter)


NEVER_JOINED = frozenset(
    {"claim", "claim_job", "renew", "reclaim", "settle", "sweep", "next_eligible_job_id"}
)
"""Verbs that are refused inside a transaction on SQLite."""
