"""The verbs of a control plane that a worker uses for a job it owns."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from tenure.control_plane import ControlPlane
from tenure.values import Failure, Json, Settled


class Owner(Protocol):
    """What `Worker` needs; every `ControlPlane` has it."""

    def update_owned(
        self,
        job_id: int,
        worker_id: str,
        token: int,
        *,
        progress: Json = None,
        lease_for: timedelta | None = None,
        require_cancel_not_requested: bool = True,
    ) -> Settled: ...

    def seal(self, job_id: int, worker_id: str, token: int, result: Json = None) -> Settled: ...

    def complete(self, job_id: int, worker_id: str, token: int, result: Json = None) -> Settled: ...

    def fail(
        self,
        job_id: int,
        worker_id: str,
        token: int,
        failure: Failure,
        *,
        delay: timedelta | None = None,
    ) -> Settled: ...

    def release(
        self,
        job_id: int,
        worker_id: str,
        token: int,
        *,
        started: bool,
        delay: timedelta = timedelta(0),
    ) -> Settled: ...

    def acknowledge_cancel(self, job_id: int, worker_id: str, token: int) -> Settled: ...


class LinkedOwner:
    """The same verbs over a link, so that a worker outlives its connection."""

    def __init__(self, call: Callable[[Callable[[ControlPlane], Settled]], Settled]) -> None:
        self._call = call

    def update_owned(
        self,
        job_id: int,
        worker_id: str,
        token: int,
        *,
        progress: Json = None,
        lease_for: timedelta | None = None,
        require_cancel_not_requested: bool = True,
    ) -> Settled:
        return self._call(
            lambda plane: plane.update_owned(
                job_id,
                worker_id,
                token,
                progress=progress,
                lease_for=lease_for,
                require_cancel_not_requested=require_cancel_not_requested,
            )
        )

    def seal(self, job_id: int, worker_id: str, token: int, result: Json = None) -> Settled:
        return self._call(lambda plane: plane.seal(job_id, worker_id, token, result))

    def complete(self, job_id: int, worker_id: str, token: int, result: Json = None) -> Settled:
        return self._call(lambda plane: plane.complete(job_id, worker_id, token, result))

    def fail(
        self,
        job_id: int,
        worker_id: str,
        token: int,
        failure: Failure,
        *,
        delay: timedelta | None = None,
    ) -> Settled:
        return self._call(lambda plane: plane.fail(job_id, worker_id, token, failure, delay=delay))

    def release(
        self,
        job_id: int,
        worker_id: str,
        token: int,
        *,
        started: bool,
        delay: timedelta = timedelta(0),
    ) -> Settled:
        return self._call(
            lambda plane: plane.release(job_id, worker_id, token, started=started, delay=delay)
        )

    def acknowledge_cancel(self, job_id: int, worker_id: str, token: int) -> Settled:
        return self._call(lambda plane: plane.acknowledge_cancel(job_id, worker_id, token))
