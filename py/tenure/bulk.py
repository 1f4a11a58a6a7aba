"""Many new jobs as the texts that enqueue_many takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tenure import codec, limits
from tenure.codec import JsonText
from tenure.errors import InvalidArgument
from tenure.postgres_call import iso, seconds
from tenure.requests import check_job, check_jobs, settings_of
from tenure.values import Json, NewJob

Members = dict[str, Any]
"""Arguments of enqueue by name, as JSON has them."""


def batch(jobs: Sequence[NewJob]) -> tuple[str, str]:
    """The array of `jobs`, and the object of the arguments that they share.

    Raises `InvalidArgument` for the first job that may not be stored.
    """
    limits.check_length(jobs, "jobs", limits.MAX_NEW_JOBS)
    jobs = list(jobs)
    try:
        elements, shared = _elements(jobs)
        text = codec.dumps_all(elements, "payload", limits.PAYLOAD_BYTES)
    except InvalidArgument:
        check_jobs(jobs)  # says which one it is
        raise
    return text, json.dumps(shared, ensure_ascii=False)


def _elements(jobs: list[NewJob]) -> tuple[list[Members], Members]:
    """An object for each job with what is its own, and one with what the first has besides.

    Arguments that are the same objects are checked once.
    """
    elements = []
    shared: Members = {}
    own: dict[tuple[int, ...], Members] = {}
    for job in jobs:
        if not isinstance(job, NewJob):
            raise InvalidArgument("not a NewJob")
        given = settings_of(job)
        if given not in own:
            members = _members(job)
            shared = shared or members
            own[given] = {n: value for n, value in members.items() if value != shared[n]}
        element = {**own[given], "payload": _payload(job.payload)}
        if job.dedup_key is not None:
            element["dedup_key"] = limits.check_dedup_key(job.dedup_key)
        elements.append(element)
    return elements, {n: value for n, value in shared.items() if value is not None}


def _members(job: NewJob) -> Members:
    """All but the payload and the dedup key, which differ from job to job."""
    checked = check_job(job._replace(payload=None, dedup_key=None))
    return {
        "queue": checked.queue,
        "kind": checked.kind,
        "priority": checked.priority,
        "run_at": iso(checked.run_at),
        "delay": seconds(checked.delay),
        "max_attempts": checked.max_attempts,
        "timeout": seconds(checked.timeout),
        "retry_base": seconds(checked.retry_base),
        "retry_cap": seconds(checked.retry_cap),
        "meta": codec.loads(checked.meta),
    }


def _payload(value: Json) -> Json:
    if isinstance(value, JsonText):
        return codec.loads(value)
    return codec.checked(value, "payload", limits.PAYLOAD_BYTES)
