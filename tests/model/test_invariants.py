"""Each invariant is broken by a step that was forged, and by that one it should be."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tenure.records import AttemptRecord
from tenure.values import JobStatus
from tests import model
from tests.contract.backends import START

LATER = START + timedelta(seconds=30)

QUEUED = model.Job(
    job_id=1, queue="q", kind="work", token_limit=150, created_at=START, next_attempt_at=START
)
RUNNING = replace(
    QUEUED,
    status=JobStatus.RUNNING,
    attempt=1,
    token=1,
    worker_id="ada",
    claimed_at=START,
    lease_expires_at=LATER,
    next_attempt_at=None,
)
CANCELLING = replace(RUNNING, cancel_requested=True)
SEALED = replace(RUNNING, sealed_at=START, result="done")
NOT_RUNNING: dict[str, Any] = {"lease_expires_at": None, "next_attempt_at": None}
FAILED = replace(RUNNING, status=JobStatus.FAILED, finished_at=LATER, **NOT_RUNNING)
COMPLETED = replace(FAILED, status=JobStatus.COMPLETED)
ATTEMPT = AttemptRecord(
    job_id=1,
    token=1,
    worker_id="ada",
    attempt=1,
    verb="fail",
    outcome="failed",
    started_at=START,
    ended_at=LATER,
    error_type=None,
    message=None,
    traceback=None,
)
OWNERLESS: dict[str, Any] = {
    "status": JobStatus.QUEUED,
    "worker_id": None,
    "claimed_at": None,
    "lease_expires_at": None,
    "next_attempt_at": LATER,
    "attempts": (ATTEMPT,),
}

FORGED: dict[str, tuple[model.Job, model.Job | None, str]] = {
    "exactly a running job has an owner": (RUNNING, replace(RUNNING, worker_id=None), "renew"),
    "a running job changes its owner only with a new token": (
        RUNNING,
        replace(RUNNING, worker_id="bob"),
        "renew",
    ),
    "the lease of a token is ended only by its worker or a new token": (
        RUNNING,
        replace(COMPLETED, worker_id="bob"),
        "complete",
    ),
    "tokens only grow": (RUNNING, replace(RUNNING, token=0), "claim"),
    "only claim reclaim and sweep mint a token": (RUNNING, replace(RUNNING, token=2), "renew"),
    "attempts are bounded": (QUEUED, replace(RUNNING, attempt=6), "claim"),
    "only a claim spends an attempt": (RUNNING, replace(RUNNING, attempt=2), "reclaim"),
    "only a lease given back or swept is refunded": (
        RUNNING,
        replace(RUNNING, **OWNERLESS | {"attempt": 0}),
        "fail",
    ),
    "only a retry moves the limit of attempts": (
        RUNNING,
        replace(RUNNING, max_attempts=9),
        "renew",
    ),
    "queued implies attempts left and no cancellation": (
        RUNNING,
        replace(RUNNING, **OWNERLESS | {"attempt": 5}),
        "claim",
    ),
    "an accepted cancellation is never lost": (
        CANCELLING,
        replace(RUNNING, **OWNERLESS),
        "fail",
    ),
    "a sealed job runs on or completes as sealed": (
        SEALED,
        replace(RUNNING, **OWNERLESS | {"result": "done"}),
        "fail",
    ),
    "no job is sealed and to be cancelled": (
        SEALED,
        replace(SEALED, cancel_requested=True),
        "cancel",
    ),
    "an end is left only by retry": (
        FAILED,
        replace(FAILED, **OWNERLESS),
        "sweep",
    ),
    "no job is lost": (RUNNING, None, "complete"),
    "a lease that did not complete leaves an attempt": (
        RUNNING,
        replace(RUNNING, **OWNERLESS | {"attempts": ()}),
        "release",
    ),
    "what an attempt came to never changes": (
        replace(RUNNING, token=2, attempts=(ATTEMPT,)),
        replace(RUNNING, token=2, attempts=(replace(ATTEMPT, outcome="lost"),)),
        "renew",
    ),
}


def world(*jobs: model.Job | None) -> model.World:
    return model.World(now=LATER, jobs={job.job_id: job for job in jobs if job is not None})


@pytest.mark.parametrize("sentence", FORGED)
def test_an_invariant_notices_a_forged_step(sentence: str) -> None:
    before, after, verb = FORGED[sentence]

    assert sentence in model.broken(world(before), world(after), verb)


def test_only_a_producer_makes_jobs() -> None:
    assert model.broken(world(), world(QUEUED), "retry") == ["only a producer makes jobs"]
    assert model.broken(world(), world(QUEUED), "enqueue") == []


def test_at_most_one_live_job_has_a_dedup_key() -> None:
    first = replace(QUEUED, dedup_key="one")
    second = replace(first, job_id=2)

    assert model.broken(world(first), world(first, second), "enqueue") == [
        "at most one live job has a dedup key"
    ]
    assert model.broken(world(first), world(first, replace(second, queue="r")), "enqueue") == []


def test_completed_is_never_left() -> None:
    back = replace(QUEUED, attempt=1, token=1)

    assert model.broken(world(FAILED), world(back), "retry") == []
    assert model.broken(world(COMPLETED), world(back), "retry") == ["an end is left only by retry"]


def test_every_invariant_was_shown_to_be_falsifiable() -> None:
    elsewhere = {"only a producer makes jobs", "at most one live job has a dedup key"}
    names = {invariant.__name__.replace("_", " ") for invariant in model.INVARIANTS}

    assert FORGED.keys() | elsewhere == names
