"""What a worker is told."""

from __future__ import annotations

from tenure.values import JobStatus, Settled, Verdict
from tests.model.world import Job, World


def settled(job: Job | None, token: int, verdict: Verdict) -> Settled:
    """A verdict with the status that the job has after the call."""
    due = None
    if job is not None and verdict in (Verdict.OK, Verdict.ALREADY):
        due = job.next_attempt_at
    return Settled(
        job_id=0 if job is None else job.job_id,
        token=token,
        verdict=verdict,
        status=None if job is None else job.status,
        next_attempt_at=due,
    )


def late(world: World, job_id: int, worker_id: str, token: int, verb: str) -> Settled:
    """The answer to a worker that may not change the job just now, or never again."""
    job = world.job(job_id)
    if job is None:
        return Settled(
            job_id=job_id, token=token, verdict=Verdict.LOST, status=None, next_attempt_at=None
        )
    if job.is_owned(worker_id, token):
        return settled(job, token, Verdict.DEFERRED)
    if _took_effect(job, worker_id, token, verb):
        return settled(job, token, Verdict.ALREADY)
    return settled(job, token, Verdict.LOST)


def _took_effect(job: Job, worker_id: str, token: int, verb: str) -> bool:
    """Whether this worker made this very call under this token before.

    A sealed job that was healed is as its owner wanted it, so complete and seal have taken effect.
    """
    if (
        verb == "complete"
        and job.status is JobStatus.COMPLETED
        and (job.token, job.worker_id) == (token, worker_id)
    ):
        return True
    return any(
        past.verb == verb or (past.outcome == "healed" and verb in ("complete", "seal"))
        for past in job.attempts
        if (past.token, past.worker_id) == (token, worker_id)
    )
