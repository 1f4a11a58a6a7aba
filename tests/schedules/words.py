"""Answers in a word."""

from __future__ import annotations

from typing import Any

from tenure.values import (
    Enqueued,
    HeldLease,
    JobAnswer,
    JobLease,
    JobStatus,
    LapsedLease,
    QueueAnswer,
    Renewal,
    Settled,
    Swept,
    Verdict,
)
from tests.model import Waits

NOTHING = {"guard": "passes"} | dict.fromkeys(
    ("claim_job", "reclaim", "next_eligible_job_id"), "nothing"
)


def word(answer: Any, verb: str = "") -> str:
    """What a verb answered; empty for what has no answer."""
    if isinstance(answer, list):
        return " + ".join(sorted(word(one) for one in answer)) or "nothing"
    if isinstance(answer, Settled | JobAnswer):
        ends = answer.verdict is Verdict.OK and answer.status is not JobStatus.RUNNING
        return f"{answer.verdict}, {answer.status}" if ends else str(answer.verdict)
    if isinstance(answer, QueueAnswer):
        return str(answer.verdict)
    if isinstance(answer, Renewal):
        return str(answer.outcome)
    if isinstance(answer, Swept):
        return f"{answer.outcome}, {answer.status}"
    if isinstance(answer, JobLease):
        return "leased"
    if isinstance(answer, LapsedLease | HeldLease):
        return "found"
    if isinstance(answer, Enqueued):
        return "created" if answer.created else "exists"
    if answer is Waits:
        return "waits"
    if isinstance(answer, type):
        return answer.__name__
    if verb == "next_eligible_job_id" and answer is not None:
        return "found"
    return NOTHING.get(verb, "") if answer is None else str(answer)
