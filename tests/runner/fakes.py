"""A control plane whose answers are written down beforehand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tenure import JobLease, JobStatus, Settled, Verdict

Answer = Verdict | BaseException


def lease(**changes: Any) -> JobLease:
    values: dict[str, Any] = {
        "job_id": 7,
        "token": 1,
        "worker_id": "w",
        "lease_expires_at": datetime(2026, 1, 1, tzinfo=UTC),
        "queue": "default",
        "kind": "work",
        "payload": None,
        "priority": 5,
        "attempt": 1,
        "max_attempts": 5,
        "timeout": None,
        "buffered": False,
        "solo": False,
        "progress": None,
        "meta": None,
        "created_at": datetime(2026, 1, 1, tzinfo=UTC),
        "last_error": None,
    }
    return JobLease(**values | changes)


class Script:
    """Answers each call with the next verdict, or raises the next error, and keeps the calls."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.calls: list[tuple[str, dict[str, Any]]] = []

    @property
    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.calls]

    def update_owned(self, job_id: int, worker_id: str, token: int, **rest: Any) -> Settled:
        return self._answer("update_owned", job_id, token, rest)

    def seal(self, job_id: int, worker_id: str, token: int, result: Any = None) -> Settled:
        return self._answer("seal", job_id, token, {"result": result})

    def complete(self, job_id: int, worker_id: str, token: int, result: Any = None) -> Settled:
        return self._answer("complete", job_id, token, {"result": result})

    def fail(self, job_id: int, worker_id: str, token: int, failure: Any, **rest: Any) -> Settled:
        return self._answer("fail", job_id, token, {"failure": failure, **rest})

    def release(
        self,
        job_id: int,
        worker_id: str,
        token: int,
        *,
        started: bool,
        delay: timedelta = timedelta(0),
    ) -> Settled:
        return self._answer("release", job_id, token, {"started": started, "delay": delay})

    def acknowledge_cancel(self, job_id: int, worker_id: str, token: int) -> Settled:
        return self._answer("acknowledge_cancel", job_id, token, {})

    def _answer(self, verb: str, job_id: int, token: int, rest: dict[str, Any]) -> Settled:
        self.calls.append((verb, rest))
        answer = self._answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return Settled(
            job_id=job_id,
            token=token,
            verdict=answer,
            status=JobStatus.RUNNING,
            next_attempt_at=None,
        )


class Clock:
    """A monotonic clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now
