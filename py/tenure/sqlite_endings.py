"""How a lease ends: by its worker, or by a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tenure import limits, sqlite_settle, sqlite_sweep
from tenure.limits import check_bool, check_delay, check_int, check_interval, check_worker_id
from tenure.requests import check_outcomes, cut_failure, json_text
from tenure.sqlite_base import Caller, owner
from tenure.sqlite_refusal import refused
from tenure.values import Failure, Json, Outcome, Settled, Swept, Verb


class SqliteEndings(Caller):
    """The part of `SqliteControlPlane` for leases that end."""

    def seal(self, job_id: int, worker_id: str, token: int, result: Json = None) -> Settled:
        """Record the outcome before completion: from here on a crash completes the job."""
        shown = owner(job_id, worker_id, token)
        text = _result(result)
        return self._verdict("seal", shown, lambda t: sqlite_settle.seal(t, **shown, result=text))

    def complete(self, job_id: int, worker_id: str, token: int, result: Json = None) -> Settled:
        """End the job for good; a sealed job keeps the result that was sealed."""
        shown = owner(job_id, worker_id, token)
        return self._end(Verb.COMPLETE, shown, result=_result(result))

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
        shown = owner(job_id, worker_id, token)
        stored = cut_failure(failure)
        return self._end(Verb.FAIL, shown, failure=stored, delay=check_delay(delay))

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
        shown = owner(job_id, worker_id, token)
        return self._end(
            Verb.RELEASE,
            shown,
            started=check_bool(started, "started"),
            delay=check_interval(delay, "delay"),
        )

    def acknowledge_cancel(self, job_id: int, worker_id: str, token: int) -> Settled:
        """End a job whose cancellation was accepted."""
        return self._end(Verb.ACKNOWLEDGE_CANCEL, owner(job_id, worker_id, token))

    def settle(self, worker_id: str, outcomes: Sequence[Outcome]) -> list[Settled]:
        """End 1 to 1,000 leases at once, each on its own; the same job twice is refused."""
        check_worker_id(worker_id)
        checked = check_outcomes(outcomes)
        self._refuse_to_join("settle")
        return self._write_or_read(
            lambda t: [sqlite_settle.end(t, worker_id, outcome) for outcome in checked],
            lambda t: [
                refused(t, o.verb, job_id=o.job_id, worker_id=worker_id, token=o.token, busy=True)
                for o in checked
            ],
        )

    def sweep(self, worker_id: str, limit: int = 100) -> list[Swept]:
        """Decide about lapsed leases: heal, cancel, queue again, or fail."""
        check_worker_id(worker_id)
        check_int(limit, "limit", 1, limits.MAX_LAPSED)
        self._refuse_to_join("sweep")
        return sqlite_sweep.sweep(self._database, worker_id, limit)

    def _end(self, verb: Verb, shown: dict[str, Any], **how: Any) -> Settled:
        outcome = Outcome(shown["job_id"], shown["token"], verb, **how)
        return self._verdict(
            verb, shown, lambda t: sqlite_settle.end(t, shown["worker_id"], outcome)
        )


def _result(value: Json) -> str | None:
    return json_text(value, "result", limits.RESULT_BYTES)
