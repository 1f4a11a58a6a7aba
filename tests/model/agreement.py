"""Whether reality did what the model says, where reality is free within bounds."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tenure.records import JobRecord
from tenure.values import JobStatus, Settled, Swept
from tests.model.world import World


class Disagreement(AssertionError):
    """Reality did what the model does not permit."""


def observe(world: World, job_id: int, next_attempt_at: datetime) -> World:
    """The world in which a queued job is due when it really is.

    Raises `Disagreement` when that is not within the backoff that the model permits.
    """
    job = world.jobs[job_id]
    earliest, latest = job.next_attempt_at, job.due_by or job.next_attempt_at
    if earliest is None or latest is None or not earliest <= next_attempt_at <= latest:
        raise Disagreement(
            f"job {job_id} is due at {next_attempt_at}, the model says {earliest} to {latest}"
        )
    return world.changed(job, next_attempt_at=next_attempt_at, due_by=None)


def adopt(world: World, mine: Any, real: Any) -> World:
    """Compare an answer of the model with the real one; the world with the real due times.

    `mine` is the answer that came with `world`. Lists are compared in any order. Raises
    `Disagreement`.
    """
    if isinstance(mine, list) and isinstance(real, list):
        if len(mine) != len(real):
            raise Disagreement(f"answered {real}, the model says {mine}")
        if [type(one) for one in mine] != [type(one) for one in real]:
            raise Disagreement(f"answered {real}, the model says {mine}")
        for one, other in zip(sorted(mine, key=_by_job), sorted(real, key=_by_job), strict=True):
            world = adopt(world, one, other)
        return world
    if isinstance(mine, Settled | Swept) and isinstance(real, Settled | Swept):
        world, mine = _with_due(world, mine, real.next_attempt_at)
    if mine != real:
        raise Disagreement(f"answered {_name(real)}, the model says {_name(mine)}")
    return world


def adopt_shown(world: World, job_id: int, real: JobRecord | None) -> World:
    """Compare a job as people see it, as `adopt` does an answer."""
    job = world.job(job_id)
    if job is not None and job.due_by is not None and real is not None:
        if real.status is not JobStatus.QUEUED or real.next_attempt_at is None:
            raise Disagreement(f"job {job_id} is {real.status}, the model says {job.status}")
        world = observe(world, job_id, real.next_attempt_at)
    mine = world.shown(job_id)
    if mine != real:
        raise Disagreement(f"there is {real}, the model says {mine}")
    return world


def _with_due(
    world: World, mine: Settled | Swept, due: datetime | None
) -> tuple[World, Settled | Swept]:
    job = world.job(mine.job_id)
    if due is None or mine.next_attempt_at is None or job is None or job.due_by is None:
        return world, mine
    return observe(world, mine.job_id, due), mine._replace(next_attempt_at=due)


def _by_job(answer: Any) -> int:
    return int(answer.job_id)


def _name(answer: object) -> object:
    return answer.__name__ if isinstance(answer, type) else answer
