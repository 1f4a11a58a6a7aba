"""The handler of the demo's one kind of job."""

from __future__ import annotations

from pathlib import Path

from tenure.demo.facts import Facts, facts_of
from tenure.demo.stage import Point, Stage
from tenure.job import Job

KIND = "analyse"
LONG = 2_000
"""Lines from which on a file's progress is worth a write."""


def analyse(job: Job, stage: Stage) -> Facts:
    """Record the facts of one file; where the payload says so, wait for a cue on the way."""
    stage.tell("started", job)
    pause = job.payload.get("pause")
    source = Path(job.payload["path"]).read_bytes()
    if source.count(b"\n") > LONG:
        job.progress({"read": len(source)})
    if pause == Point.RUNNING:
        stage.wait(Point.RUNNING, job, check=job.check)
    facts = facts_of(source, job.check) | {"module": job.payload["module"]}
    if pause == Point.SEALING:
        stage.hold_seal(job)
    job.seal(facts)
    if pause == Point.SEALED:
        stage.wait(Point.SEALED, job)
    return facts
