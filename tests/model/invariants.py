"""What is true of every step, whatever the verb and whoever calls it.

Each predicate is a sentence. It is given the world before and after a step with the verbs that
the step consists of: one, or those of a transaction that commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet

from tenure.values import JobStatus
from tests.model.world import Job, World

Invariant = Callable[[World, World, AbstractSet[str]], bool]

MINTS = frozenset({"claim", "claim_job", "reclaim", "sweep"})
SPENDS = frozenset({"claim", "claim_job"})
REFUNDS = frozenset({"release", "settle", "sweep"})
MAKES = frozenset({"enqueue", "enqueue_many"})
ENDED = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED})

INVARIANTS: list[Invariant] = []


def broken(before: World, after: World, *verbs: str) -> list[str]:
    """The sentences that a step makes untrue."""
    called = frozenset(verbs)
    return [
        invariant.__name__.replace("_", " ")
        for invariant in INVARIANTS
        if not invariant(before, after, called)
    ]


def _invariant(predicate: Invariant) -> Invariant:
    INVARIANTS.append(predicate)
    return predicate


def _moved(before: World, after: World) -> Iterator[tuple[Job, Job]]:
    for job_id, job in after.jobs.items():
        was = before.jobs.get(job_id)
        if was is not None and was is not job:
            yield was, job


def _touched(before: World, after: World) -> Iterator[Job]:
    for job_id, job in after.jobs.items():
        if before.jobs.get(job_id) is not job:
            yield job


@_invariant
def exactly_a_running_job_has_an_owner(
    before: World, after: World, verbs: AbstractSet[str]
) -> bool:
    for job in _touched(before, after):
        lease = job.worker_id, job.claimed_at, job.lease_expires_at
        if job.status is JobStatus.RUNNING and None in lease:
            return False
        if job.status is JobStatus.QUEUED and lease != (None, None, None):
            return False
        if job.status in ENDED and job.lease_expires_at is not None:
            return False
    return True


@_invariant
def a_running_job_changes_its_owner_only_with_a_new_token(
    before: World, after: World, verbs: AbstractSet[str]
) -> bool:
    return all(
        now.token > was.token
        or now.status is not JobStatus.RUNNING
        or (was.status is JobStatus.RUNNING and was.worker_id == now.worker_id)
        for was, now in _moved(before, after)
    )


@_invariant
def the_lease_of_a_token_is_ended_only_by_its_worker_or_a_new_token(
    before: World, after: World, verbs: AbstractSet[str]
) -> bool:
    return all(
        was.worker_id == now.worker_id
        or now.token > was.token
        or any(past.token == was.token for past in now.attempts)
        for was, now in _moved(before, after)
        if was.status is JobStatus.RUNNING
    )


@_invariant
def tokens_only_grow(before: World, after: World, verbs: AbstractSet[str]) -> bool:
    return all(now.token >= was.token for was, now in _moved(before, after))


@_invariant
def only_claim_reclaim_and_sweep_mint_a_token(
    before: World, after: World, verbs: AbstractSet[str]
) -> bool:
    return bool(verbs & MINTS) or all(now.token == was.token for was, now in _moved(before, after))


@_invariant
def attempts_are_bounded(before: World, after: World, verbs: AbstractSet[str]) -> bool:
    return all(0 <= job.attempt <= job.max_attempts for job in _touched(before, after))


@_invariant
def only_a_claim_spends_an_attempt(before: World, after: World, verbs: AbstractSet[str]) -> bool:
    return bool(verbs & SPENDS) or all(
        now.attempt <= was.attempt for was, now in _moved(before, after)
    )


@_invariant
def only_a_lease_given_back_or_swept_is_refunded(
    before: World, after: World, verbs: AbstractSet[str]
) -> bool:
    return all(
        now.attempt >= was.attempt
        or (
            now.attempt == was.attempt - 1
            and was.status is JobStatus.RUNNING
            and bool(verbs & REFUNDS)
        )
        for was, now in _moved(before, after)
    )


@_invariant
def only_a_retry_moves_the_limit_of_attempts(
    before: World, after: World, verbs: AbstractSet[str]
) -> bool:
    return "retry" in verbs or all(
        now.max_attempts == was.max_attempts for was, now in _moved(before, after)
    )


@_invariant
def queued_implies_attempts_left_and_no_cancellation(
    before: World, after: World, verbs: AbstractSet[str]
) -> bool:
    return all(
        job.attempt < job.max_attempts
        and not job.cancel_requested
        and job.next_attempt_at is not None
        for job in _touched(before, after)
        if job.status is JobStatus.QUEUED
    )


@_invariant
def an_accepted_cancellation_is_never_lost(
    before: World, after: World, verbs: AbstractSet[str]
) -> bool:
    return all(
        now.status is JobStatus.CANCELLED
        or (now.status is JobStatus.RUNNING and now.cancel_requested)
        or "retry" in verbs
        for was, now in _moved(before, after)
        if was.cancel_requested
    )


@_invariant
def a_sealed_job_runs_on_or_completes_as_sealed(
    before: World, after: World, verbs: AbstractSet[str]
) -> bool:
    return all(
        now.result == was.result
        and (
            now.status is JobStatus.COMPLETED
            or (
                now.status is JobStatus.RUNNING
                and now.attempt == was.attempt
                and now.sealed_at == was.sealed_at
            )
        )
        for was, now in _moved(before, after)
        if was.sealed_at is not None
    )


@_invariant
def no_job_is_sealed_and_to_be_cancelled(
    before: World, after: World, verbs: AbstractSet[str]
) -> bool:
    return not any(
        job.sealed_at is not None and job.cancel_requested for job in _touched(before, after)
    )


@_invariant
def an_end_is_left_only_by_retry(before: World, after: World, verbs: AbstractSet[str]) -> bool:
    return all(
        "retry" in verbs and was.status is not JobStatus.COMPLETED
        for was, now in _moved(before, after)
        if was.status in ENDED and now != was
    )


@_invariant
def no_job_is_lost(before: World, after: World, verbs: AbstractSet[str]) -> bool:
    return before.jobs.keys() <= after.jobs.keys()


@_invariant
def only_a_producer_makes_jobs(before: World, after: World, verbs: AbstractSet[str]) -> bool:
    return bool(verbs & MAKES) or after.jobs.keys() <= before.jobs.keys()


@_invariant
def at_most_one_live_job_has_a_dedup_key(
    before: World, after: World, verbs: AbstractSet[str]
) -> bool:
    keys = [
        (job.queue, job.dedup_key)
        for job in after.jobs.values()
        if job.is_live and job.dedup_key is not None
    ]
    return len(keys) == len(set(keys))


@_invariant
def a_lease_that_did_not_complete_leaves_an_attempt(
    before: World, after: World, verbs: AbstractSet[str]
) -> bool:
    return all(
        now.status is JobStatus.COMPLETED
        or (now.status is JobStatus.RUNNING and now.token == was.token)
        or any(past.token == was.token for past in now.attempts)
        for was, now in _moved(before, after)
        if was.status is JobStatus.RUNNING
    )


@_invariant
def what_an_attempt_came_to_never_changes(
    before: World, after: World, verbs: AbstractSet[str]
) -> bool:
    for was, now in _moved(before, after):
        kept = {past.token: past for past in now.attempts}
        if any(kept.get(past.token, past) != past for past in was.attempts):
            return False
    return True
