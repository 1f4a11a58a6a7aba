"""What a handler is given."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tenure import limits
from tenure.errors import CancelRequested, CommitInDoubt, InvalidArgument, LeaseLost
from tenure.link import BROKEN
from tenure.owner import Owner
from tenure.requests import json_text
from tenure.standing import Standing
from tenure.transactions import Transactions, completing
from tenure.values import JobLease, Json, Settled, Verdict
from tenure.writing import about, until_written

logger = logging.getLogger("tenure.worker")


class Job:
    """A running job, as its handler sees it.

    The handler runs while the lease lasts, and a lease can end at any moment: call `check` or
    `progress` now and then in a long handler, so that it stops when the job is cancelled or
    belongs to somebody else. Only the handler's own thread and threads it started may use it.

    In an `async def` handler, `check` is as it is, and its task is cancelled besides when there
    is reason to stop; `aprogress` and `aseal` take the place of what would hold up the loop.
    """

    def __init__(
        self, owner: Owner, standing: Standing, transactions: Transactions | None = None
    ) -> None:
        self._owner = owner
        self._standing = standing
        self._transactions = transactions
        self._in_transaction = False
        self._result: Json = None

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
        `CancelRequested` when a cancellation was accepted, `TimedOut` a moment before the job's
        timeout is over: two seconds, or a fifth of the timeout. A handler lets all three pass.
        """
        if (error := self._standing.why_stop()) is not None:
            raise error

    def progress(self, value: Json) -> bool:
        """Note how far the work is, at most 16 KiB of JSON, and extend the lease.

        True when it was noted; False when it could not be written just now, which is no reason
        to stop. Raises `InvalidArgument` for what is not JSON, and what `check` raises; nothing
        is noted then.
        """
        standing = self._standing
        if standing.timed_out:
            self.check()
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
        self._refuse_in_doubt()
        settled = until_written(
            lambda: self._owner.seal(self.job_id, self.worker_id, self.token, result),
            self._standing,
        )
        if settled is None:
            raise LeaseLost(f"the lease on job {self.job_id} is lost: {self._standing.lost}")
        self._stop_unless_owned(settled)
        self._standing.sealed = True

    async def aprogress(self, value: Json) -> bool:
        """`progress` for an `async def` handler, whose event loop goes on meanwhile."""
        return await asyncio.to_thread(self.progress, value)

    async def aseal(self, result: Json = None) -> None:
        """`seal` for an `async def` handler, whose event loop goes on meanwhile.

        A handler that is cancelled while it waits for this may have sealed its job all the same.
        """
        await asyncio.to_thread(self.seal, result)

    @contextmanager
    def transaction(self, connection: Any = None) -> Iterator[Any]:
        """Run SQL in one transaction that also completes the job: both happen, or neither.

            with job.transaction() as connection:
                connection.execute("insert into receipts values (%s)", [job.payload["order"]])
                job.set_result({"receipt": 7})

        Gives a psycopg or sqlite3 connection of the store's own; or pass a psycopg or sqlite3
        connection, or SQLAlchemy's Connection or Session, to the same database, with no
        transaction open. The block's first statement proves ownership and holds the lease still
        (`guard`), the last completes the job; a worker that lost it writes nothing. An exception
        rolls back, and the handler may try again. Afterwards the job has ended: what the handler
        returns or raises is ignored.

        A block that idles for longer than a lease is rolled back by the server. On SQLite it
        holds the file's write lock, so it is bounded to a third of the lease: work first, then
        write. In an `async def` handler it blocks the loop: run the block by `asyncio.to_thread`.

        Raises `LeaseLost`, `CancelRequested`, `Busy` when somebody holds the job or the file for
        2 s or a third of the lease is over, `InvalidArgument`. When the answer to COMMIT never
        came, the job is read: where it has ended by this, all is well; else `CommitInDoubt` is
        raised, and the attempt ends as a failure whatever the handler makes of it.
        """
        self._refuse_in_doubt()
        if self._standing.ended or self._standing.sealed or self._in_transaction:
            raise InvalidArgument(
                f"job {self.job_id} has ended, is sealed, or is in a transaction already",
                hint="one job.transaction() ends the job",
            )
        if self._transactions is None:
            raise InvalidArgument(
                "this worker has no store to begin a transaction in",
                hint="Worker(..., transactions=Transactions(store))",
            )
        self.check()
        self._in_transaction, self._result = True, None
        try:
            with completing(
                self._transactions, self._standing, lambda: self._result, connection
            ) as given:
                yield given
        finally:
            self._in_transaction = False

    def set_result(self, value: Json) -> None:
        """The result with which `transaction` completes the job, called inside its block.

        Raises `InvalidArgument` for what is not JSON, or outside of a block: there a handler
        returns its result.
        """
        if not self._in_transaction:
            raise InvalidArgument(
                "set_result is called outside of job.transaction()", hint="return the result"
            )
        json_text(value, "result", limits.RESULT_BYTES)
        self._result = value

    def _refuse_in_doubt(self) -> None:
        if self._standing.doubt is not None:
            raise CommitInDoubt(self._standing.doubt.message)

    def _stop_unless_owned(self, settled: Settled) -> None:
        if settled.verdict is Verdict.LOST:
            self._standing.lose("the token is not the current one")
            raise LeaseLost(f"token {self.token} of job {self.job_id} was refused")
        if settled.verdict is Verdict.CANCEL_REQUESTED:
            self._standing.request_cancel()
            raise CancelRequested(f"a cancellation of job {self.job_id} was accepted")
