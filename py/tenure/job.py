"""What a handler is given."""

from __future__ import annotations

import logging
import time
from typing import Any

from tenure.errors import CancelRequested, LeaseLost
from tenure.link import BROKEN
from tenure.owner import Owner
from tenure.standing import Standing
from tenure.values import JobLease, Json, Settled, Verdict
from tenure.writing import about, until_written

logger = logging.getLogger("tenure.worker")


class Job:
    """A running job, as its handler sees it.

    The handler runs while the lease lasts, and a lease can end at any moment: call `check` or
    `progress` now and then in a long handler, so that it stops when the job is cancelled or
    belongs to somebody else. Only the handler's own thread and threads it started may use it.
    """

    def __init__(self, owner: Owner, standing: Standing) -> None:
        self._owner = owner
        self._standing = standing

    @property
    def lease(self) -> JobLease:
        """The lease as it was granted: a receipt that never changes."""
        return self._standing.lease

    @property
    def job_id(self) -> int:
        return self.lease.job_id

    @property
    def token(self) -> int:
        """The fencing token of this attempt."""
        return self.lease.token

    @property
    def worker_id(self) -> str:
        return self.lease.worker_id

    @property
    def queue(self) -> str:
        return self.lease.queue

    @property
    def kind(self) -> str:
        return self.lease.kind

    @property
    def payload(self) -> Any:
        return self.lease.payload

    @property
    def meta(self) -> Any:
        return self.lease.meta

    @property
    def attempt(self) -> int:
        """1 for the first start."""
        return self.lease.attempt

    @property
    def max_attempts(self) -> int:
        return self.lease.max_attempts

    @property
    def last_error(self) -> str | None:
        """How the attempt before this one ended, as `Type: message`."""
        return self.lease.last_error

    @property
    def earlier_progress(self) -> Any:
        """What an earlier attempt last noted with `progress`."""
        return self.lease.progress

    def check(self) -> None:
        """Go on only if this attempt should. Touches no database.

        Raises `LeaseLost` when the job is somebody else's or the lease was not renewed in time,
        `CancelRequested` when a cancellation was accepted. A handler lets both pass.
        """
        if (why := self._standing.lost) is not None:
            raise LeaseLost(f"the lease on job {self.job_id} is lost: {why}")
        if self._standing.cancel_requested and not self._standing.sealed:
            raise CancelRequested(f"a cancellation of job {self.job_id} was accepted")

    def progress(self, value: Json) -> bool:
        """Note how far the work is, at most 16 KiB of JSON, and extend the lease.

        True when it was noted; False when it could not be written just now, which is no reason
        to stop. Raises `InvalidArgument` for what is not JSON, `LeaseLost` and
        `CancelRequested`; nothing is noted then.
        """
        standing = self._standing
        sent = time.monotonic()
        try:
            settled = self._owner.update_owned(
                self.job_id,
                self.worker_id,
                self.token,
                progress=value,
                lease_for=standing.lease_for,
                # A sealed job cannot be cancelled, so there is nothing to stand in the way.
                require_cancel_not_requested=True,
            )
        except BROKEN as error:
            logger.info(
                "progress of job %d was not written: %s",
                self.job_id,
                error,
                extra=about(self.lease),
            )
            self.check()
            return False
        if settled.verdict in (Verdict.OK, Verdict.DEFERRED):
            standing.proved(sent)
        self._stop_unless_owned(settled)
        return settled.verdict is Verdict.OK

    def seal(self, result: Json = None) -> None:
        """Record the outcome for good, before the handler returns.

        Call it when the effects are done. From here on a crash completes the job with this
        result instead of running it again, and the job cannot be cancelled. What the handler
        returns afterwards is ignored. Sealing twice keeps the first result.

        Waits while the outcome cannot be written and the lease lasts. Raises `LeaseLost`,
        `CancelRequested`, `InvalidArgument` for what is not JSON; nothing is sealed then.
        """
        settled = until_written(
            lambda: self._owner.seal(self.job_id, self.worker_id, self.token, result),
            self._standing,
        )
        if settled is None:
            raise LeaseLost(f"the lease on job {self.job_id} is lost: {self._standing.lost}")
        self._stop_unless_owned(settled)
        self._standing.sealed = True

    def _stop_unless_owned(self, settled: Settled) -> None:
        if settled.verdict is Verdict.LOST:
            self._standing.lose("the token is not the current one")
            raise LeaseLost(f"token {self.token} of job {self.job_id} was refused")
        if settled.verdict is Verdict.CANCEL_REQUESTED:
            self._standing.request_cancel()
            raise CancelRequested(f"a cancellation of job {self.job_id} was accepted")
