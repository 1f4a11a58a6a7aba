"""Whole requests, checked and put into the form that both backends store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from tenure import limits
from tenure.codec import JsonText, cut_text, dumps
from tenure.errors import InvalidArgument
from tenure.limits import short
from tenure.values import Failure, Json, NewJob, Outcome, Verb


class CheckedJob(NamedTuple):
    """A `NewJob` that may be stored: `payload` and `meta` are JSON texts, `run_at` is UTC."""

    queue: str
    kind: str
    payload: str | None
    priority: int
    run_at: datetime | None
    delay: timedelta | None
    max_attempts: int
    dedup_key: str | None
    """As given; see `limits.stored_dedup_key`."""
    timeout: timedelta | None
    retry_base: timedelta | None
    retry_cap: timedelta | None
    meta: str | None


def check_job(job: NewJob, at: str = "") -> CheckedJob:
    """`job`, checked; `at` is put before the names in messages (`jobs[3].`)."""
    if not isinstance(job, NewJob):
        raise InvalidArgument(
            f"{at.rstrip('.') or 'job'} is not a NewJob: {short(job)}", hint="pass NewJob(...)"
        )
    if job.run_at is not None and job.delay is not None:
        raise InvalidArgument(f"{at}run_at and delay are given together", hint="pass one of them")
    return CheckedJob(
        queue=limits.check_name(job.queue, at + "queue"),
        kind=limits.check_name(job.kind, at + "kind"),
        payload=json_text(job.payload, at + "payload", limits.PAYLOAD_BYTES),
        priority=limits.check_int(job.priority, at + "priority", 0, limits.MAX_PRIORITY),
        run_at=None if job.run_at is None else limits.check_instant(job.run_at, at + "run_at"),
        delay=limits.check_delay(job.delay, at + "delay"),
        max_attempts=limits.check_int(
            job.max_attempts, at + "max_attempts", 1, limits.MAX_ATTEMPTS
        ),
        dedup_key=limits.check_dedup_key(job.dedup_key, at + "dedup_key"),
        timeout=limits.check_timeout(job.timeout, at + "timeout"),
        retry_base=limits.check_delay(job.retry_base, at + "retry_base"),
        retry_cap=limits.check_delay(job.retry_cap, at + "retry_cap"),
        meta=json_text(job.meta, at + "meta", limits.META_BYTES),
    )


def settings_of(job: NewJob) -> tuple[int, ...]:
    """Equal for jobs that differ in nothing but the payload and the dedup key.

    By the identity of the objects, so for as long as they live: equal ones may yet differ, for
    True is 1.
    """
    kind, queue, _, priority, run_at, delay, attempts, _, timeout, base, cap, meta = job
    return (
        id(kind),
        id(queue),
        id(priority),
        id(run_at),
        id(delay),
        id(attempts),
        id(timeout),
        id(base),
        id(cap),
        id(meta),
    )


def check_jobs(jobs: Sequence[NewJob]) -> list[CheckedJob]:
    """`jobs`, each checked; what many share is checked once."""
    limits.check_length(jobs, "jobs", limits.MAX_NEW_JOBS)
    jobs = list(jobs)
    known: dict[tuple[int, ...], CheckedJob] = {}
    checked = []
    for i, job in enumerate(jobs):
        at = f"jobs[{i}]."
        like = known.get(settings_of(job)) if type(job) is NewJob else None
        if like is not None:
            one = like._replace(
                payload=json_text(job.payload, at + "payload", limits.PAYLOAD_BYTES),
                dedup_key=limits.check_dedup_key(job.dedup_key, at + "dedup_key"),
            )
        else:
            one = check_job(job, at)
            known[settings_of(job)] = one
        checked.append(one)
    return checked


def check_leases(leases: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """The job ids and the tokens of `leases`, each lease once.

    A job may be there twice: a worker that lost it and was granted it again shows both tokens.
    """
    limits.check_length(leases, "leases", limits.MAX_LEASES)
    shown = {
        (
            limits.check_job_id(job_id, f"leases[{i}].job_id"),
            limits.check_token(token, f"leases[{i}].token"),
        ): None
        for i, (job_id, token) in enumerate(leases)
    }
    return [job_id for job_id, _ in shown], [token for _, token in shown]


_VERBS = {verb.value: verb for verb in Verb}


def _verb(value: object) -> Verb | None:
    return _VERBS.get(value) if isinstance(value, str) else None


def check_outcomes(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """`outcomes` as they may be stored; see `check_outcome`."""
    limits.check_length(outcomes, "outcomes", limits.MAX_LEASES)
    checked = [
        outcome if _is_mere_completion(outcome) else check_outcome(outcome, f"outcomes[{i}].")
        for i, outcome in enumerate(outcomes)
    ]
    job_ids = [outcome.job_id for outcome in checked]
    if len(set(job_ids)) < len(job_ids):
        twice = next(job_id for i, job_id in enumerate(job_ids) if job_id in job_ids[:i])
        raise InvalidArgument(f"job {twice} is in outcomes twice", hint="name each job once")
    return checked


def _is_mere_completion(outcome: Outcome) -> bool:
    """Whether nothing is to be checked about it: the usual case, by the thousand."""
    return (
        outcome.verb is Verb.COMPLETE
        and (outcome.result is None or type(outcome.result) is JsonText)
        and outcome.failure is None
        and outcome.delay is None
        and outcome.started is True
        and type(outcome.job_id) is int
        and type(outcome.token) is int
        and -limits.MAX_BIGINT <= outcome.job_id <= limits.MAX_BIGINT
        and -limits.MAX_BIGINT <= outcome.token <= limits.MAX_BIGINT
    )


def check_outcome(outcome: Outcome, at: str = "") -> Outcome:
    """`outcome` as it may be stored: its result a `JsonText`, its failure's texts cut."""
    verb = _verb(outcome.verb)
    if verb is None:
        raise InvalidArgument(f"{at}verb is not known: {short(outcome.verb)}", hint=", ".join(Verb))
    if (outcome.failure is not None) != (verb is Verb.FAIL):
        raise InvalidArgument(
            f"{at}failure {'is missing' if verb is Verb.FAIL else f'is given to {verb}'}",
            hint="fail takes one, no other verb does",
        )
    if outcome.result is not None and verb is not Verb.COMPLETE:
        raise InvalidArgument(f"{at}result is given to {verb}", hint="only complete takes one")
    if outcome.delay is not None and verb not in (Verb.FAIL, Verb.RELEASE):
        raise InvalidArgument(f"{at}delay is given to {verb}", hint="fail and release take one")
    return Outcome(
        limits.check_job_id(outcome.job_id, at + "job_id"),
        limits.check_token(outcome.token, at + "token"),
        verb,
        _json(outcome.result, at + "result", limits.RESULT_BYTES),
        None if outcome.failure is None else cut_failure(outcome.failure, at),
        limits.check_delay(outcome.delay, at + "delay"),
        limits.check_bool(outcome.started, at + "started"),
    )


def cut_failure(failure: Failure, at: str = "") -> Failure:
    """`failure` with its texts as they are stored."""
    for name in ("error_type", "message", "traceback"):
        text = getattr(failure, name)
        if not isinstance(text, str) and not (text is None and name == "traceback"):
            raise InvalidArgument(f"{at}{name} is not a str: {short(text)}", hint="pass a str")
    return Failure(
        error_type=cut_text(failure.error_type, limits.ERROR_TYPE_BYTES),
        message=cut_text(failure.message, limits.MESSAGE_BYTES),
        traceback=None
        if failure.traceback is None
        else cut_text(failure.traceback, limits.TRACEBACK_BYTES),
        retryable=limits.check_bool(failure.retryable, at + "retryable"),
        cancel=limits.check_bool(failure.cancel, at + "cancel"),
    )


def _json(value: Json, what: str, max_bytes: int) -> JsonText | None:
    text = json_text(value, what, max_bytes)
    return None if text is None else JsonText(text)


def json_text(value: Json, what: str, max_bytes: int) -> str | None:
    """The JSON text of a value; None, which is stored as nothing at all, for None."""
    if value is None:
        return None
    if isinstance(value, JsonText):
        return str(value)
    return dumps(value, what, max_bytes)
