"""How a lease ends: by its worker, or by a sweep."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

from tenure import limits, postgres_rows
from tenure.limits import check_bool, check_delay, check_int, check_interval, check_worker_id
from tenure.postgres_base import OWNER, Caller, owner
from tenure.postgres_call import plain_array, seconds
from tenure.requests import check_outcomes, cut_failure, json_text
from tenure.values import Failure, Json, Outcome, Settled, Swept


class PostgresEndings(Caller):
    """The part of `PostgresControlPlane` for leases that end."""

    def seal(self, job_id: int, worker_id: str, token: int, result: Json = None) -> Settled:
        """Record the outcome before completion: from here on a crash completes the job."""
        return self._verdict(
            f"seal({OWNER}, p_result => %s::jsonb)",
            (*owner(job_id, worker_id, token), _result(result)),
        )

    def complete(self, job_id: int, worker_id: str, token: int, result: Json = None) -> Settled:
        """End the job for good; a sealed job keeps the result that was sealed."""
        return self._verdict(
            f"complete({OWNER}, p_result => %s::jsonb)",
            (*owner(job_id, worker_id, token), _result(result)),
        )

    def fail(
        self,
        job_id: int,
        worker_id: str,
        token: int,
        failure: Failure,
        *,
        delay: timedelta | None = None,
    ) -> Settled:
        """Report a failed attempt: queued again after `delay` (None: backoff), or failed."""
        stored = cut_failure(failure)
        return self._verdict(
            f"fail({OWNER}, p_error_type => %s::text, p_message => %s::text,"
            " p_traceback => %s::text, p_retryable => %s::bool, p_delay => %s::interval,"
            " p_cancel => %s::bool)",
            (
                *owner(job_id, worker_id, token),
                stored.error_type,
                stored.message,
                stored.traceback,
                stored.retryable,
                seconds(check_delay(delay)),
                stored.cancel,
            ),
        )

    def release(
        self,
        job_id: int,
        worker_id: str,
        token: int,
        *,
        started: bool,
        delay: timedelta = timedelta(0),
    ) -> Settled:
        """Give the job back; an attempt that was not started is refunded."""
        return self._verdict(
            f"release({OWNER}, p_started => %s::bool, p_delay => %s::interval)",
            (
                *owner(job_id, worker_id, token),
                check_bool(started, "started"),
                seconds(check_interval(delay, "delay")),
            ),
        )

    def acknowledge_cancel(self, job_id: int, worker_id: str, token: int) -> Settled:
        """End a job whose cancellation was accepted."""
        return self._verdict(f"acknowledge_cancel({OWNER})", owner(job_id, worker_id, token))

    def settle(self, worker_id: str, outcomes: Sequence[Outcome]) -> list[Settled]:
        """End 1 to 1,000 leases at once, each on its own; the same job twice is refused.

        Answers in no particular order.
        """
        checked = check_outcomes(outcomes)
        rows = self._alone(
            "settle",
            postgres_rows.VERDICT,
            "p_worker_id => %s::text, p_job_ids => %s::bigint[], p_tokens => %s::bigint[],"
            " p_verbs => %s::text[], p_results => %s::text[]::jsonb[],"
            " p_errors => %s::text[]::jsonb[], p_delays => %s::text[]::interval[],"
            " p_started => %s::bool[]",
            (
                check_worker_id(worker_id),
                plain_array([str(o.job_id) for o in checked]),
                plain_array([str(o.token) for o in checked]),
                plain_array([o.verb for o in checked]),
                _any([o.result for o in checked]),
                _any([_error_text(o) for o in checked]),
                _any([seconds(o.delay) for o in checked]),
                None if all(o.started for o in checked) else [o.started for o in checked],
            ),
        )
        return list(map(postgres_rows.settled, rows))

    def sweep(self, worker_id: str, limit: int = 100) -> list[Swept]:
        """Decide about lapsed leases: heal, cancel, queue again, or fail."""
        rows = self._alone(
            "sweep",
            postgres_rows.SWEPT,
            "p_worker_id => %s::text, p_limit => %s::int",
            (check_worker_id(worker_id), check_int(limit, "limit", 1, limits.MAX_LAPSED)),
        )
        return [postgres_rows.swept(row) for row in rows]


def _result(value: Json) -> str | None:
    return json_text(value, "result", limits.RESULT_BYTES)


def _any(values: Sequence[str | None]) -> Sequence[str | None] | None:
    """None for an array that would hold nothing."""
    return values if any(value is not None for value in values) else None


def _error_text(outcome: Outcome) -> str | None:
    failure = outcome.failure
    if failure is None:
        return None
    return json.dumps(
        {
            "error_type": failure.error_type,
            "message": failure.message,
            "traceback": failure.traceback,
            "retryable": failure.retryable,
            "cancel": failure.cancel,
        },
        ensure_ascii=False,
    )
