"""The figures of a run, read from the queue itself, against what was promised."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tenure.demo.crew import Heard
from tenure.demo.scenario import Story
from tenure.records import MAX_RECORDS, AttemptRecord, JobRecord, Records
from tenure.values import JobStatus

LARGEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What became of the jobs of one run."""

    enqueued: int
    completed: int
    cancelled: int
    others: int
    """Failed or still live."""
    attempts: int
    """Starts that were charged."""
    recovered: int
    """Leases that were ended for workers which did not come back in time."""
    healed: int
    """Sealed jobs that a sweep completed, and whose handler was started once."""
    twice: int
    """Jobs whose completion was accepted more than once."""
    refused: int
    """Writes under a token that was not the current one."""
    unparsed: int
    """Sources that do not parse, which is a fact about them."""
    largest: list[dict[str, Any]]


def figures(records: Records, queue: str, heard: Heard) -> Figures:
    """Counted from the queue's records; what nobody keeps, from what the workers heard.

    A completion is accepted by an answer `ok` to a worker, or by the sweep that healed the job;
    the queue itself has each job once.
    """
    jobs = records.jobs(queue=queue, limit=MAX_RECORDS)
    ended = [attempt for job in jobs if _was_lent_again(job) for attempt in _of(records, job)]
    healed = [attempt.job_id for attempt in ended if attempt.outcome == "healed"]
    accepted = Counter(heard.completed)
    accepted.update(healed)
    by_status = Counter(job.status for job in jobs)
    results = [job.result for job in jobs if job.status is JobStatus.COMPLETED]
    return Figures(
        enqueued=len(jobs),
        completed=by_status[JobStatus.COMPLETED],
        cancelled=by_status[JobStatus.CANCELLED],
        others=len(jobs) - by_status[JobStatus.COMPLETED] - by_status[JobStatus.CANCELLED],
        attempts=sum(job.attempt for job in jobs),
        recovered=sum(attempt.verb in ("sweep", "reclaim") for attempt in ended),
        healed=sum(heard.started[job_id] == 1 for job_id in healed),
        twice=sum(times > 1 for times in accepted.values())
        + len(jobs)
        - len({job.job_id for job in jobs}),
        refused=len(heard.refused),
        unparsed=sum(result["fault"] is not None for result in results),
        largest=sorted(results, key=lambda result: (-result["lines"], result["module"]))[:LARGEST],
    )


def broken_promises(found: Figures, story: Story, records: Records, heard: Heard) -> list[str]:
    """What is not as it must be, in words; nothing is how it should be."""
    healed = [attempt.outcome for attempt in records.attempts(story.healed)]
    promises = {
        "every job that was enqueued is in the queue's records": found.enqueued == story.enqueued,
        "every job has completed or was cancelled": found.others == 0,
        "the two jobs that were cancelled are, and no other": found.cancelled == 2
        and _is(records, story.cancelled_running, JobStatus.CANCELLED)
        and _is(records, story.cancelled_queued, JobStatus.CANCELLED),
        "the leases of the killed and of the stopped worker were recovered": found.recovered >= 2,
        "the sealed job was healed, and its handler started once": "healed" in healed
        and heard.started[story.healed] == 1,
        "no completion was accepted twice": found.twice == 0,
        "what the stopped worker wrote was refused, and the job completed once": story.stale
        in [job_id for job_id, _, verb in heard.refused if verb == "seal"]
        and heard.completed[story.stale] == 1,
        "every completed job has its facts": len(found.largest) == min(LARGEST, found.completed),
    }
    return [promise for promise, holds in promises.items() if not holds]


def _was_lent_again(job: JobRecord) -> bool:
    """Whether a lease of the job may have ended without completing it."""
    return job.token > 1 or job.status is not JobStatus.COMPLETED


def _of(records: Records, job: JobRecord) -> list[AttemptRecord]:
    return records.attempts(job.job_id)


def _is(records: Records, job_id: int, status: JobStatus) -> bool:
    job = records.job(job_id)
    return job is not None and job.status is status
