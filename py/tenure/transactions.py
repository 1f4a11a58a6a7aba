"""Completes a job in the same commit as the handler's own writes."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from tenure.backing_postgres import PostgresBacking, PostgresPlane
from tenure.backing_sqlite import SqliteBacking
from tenure.backoff import pauses
from tenure.control_plane import ControlPlane
from tenure.errors import Busy, CancelRequested, CommitInDoubt, LeaseLost
from tenure.joining import is_sqlalchemy, plane_over, unscoped
from tenure.planes import Planes
from tenure.postgres_store import PostgresStore
from tenure.scopes import PsycopgScope, Scope, SqlalchemyScope, SqliteScope
from tenure.sqlite import SqliteControlPlane
from tenure.sqlite_file import PRAGMAS
from tenure.sqlite_store import SqliteStore
from tenure.standing import Standing
from tenure.values import Failure, JobResult, JobStatus, Json, Verdict
from tenure.writing import about

logger = logging.getLogger("tenure.worker")


class Transactions:
    """Opens what `job.transaction()` runs in, over a store. Threads: any."""

    def __init__(self, store: PostgresStore | SqliteStore) -> None:
        self._store = store
        self._planes: Planes
        if isinstance(store, PostgresStore):
            self._planes = Planes(PostgresBacking(store).open)
        else:
            self._planes = Planes(SqliteBacking(store).open)

    def __reduce__(self) -> tuple[Any, ...]:
        return Transactions, (self._store,)

    def scope(self, connection: Any) -> AbstractContextManager[Scope]:
        """A transaction over a caller's connection, or over one of the store's own for None."""
        if connection is not None:
            return self._over(unscoped(connection))
        return self._own()

    def result(self, job_id: int) -> JobResult | None:
        """What the database says of a job, over a connection of its own."""
        with self._planes.lent() as plane:
            return next(iter(plane.results([job_id])), None)

    def close(self) -> None:
        """Close what is idle."""
        self._planes.close()

    @contextmanager
    def _over(self, connection: Any) -> Iterator[Scope]:
        over = partial(plane_over, kind=self._store.kind, schema=self._schema)
        if is_sqlalchemy(connection):
            yield SqlalchemyScope(connection, over)
        elif isinstance(connection, psycopg.Connection):
            yield PsycopgScope(connection, over(connection))
        else:
            yield SqliteScope(connection, over(connection))

    @property
    def _schema(self) -> str:
        return self._store.schema if isinstance(self._store, PostgresStore) else ""

    @contextmanager
    def _own(self) -> Iterator[Scope]:
        if isinstance(self._store, SqliteStore):
            with closing(sqlite3.connect(self._store.path, isolation_level=None)) as connection:
                for pragma in PRAGMAS:
                    connection.execute(pragma).fetchall()
                yield SqliteScope(connection, SqliteControlPlane.on(connection))
            return
        with self._planes.lent() as plane:
            assert isinstance(plane, PostgresPlane)
            try:
                yield PsycopgScope(plane.connection, plane)
            finally:
                if plane.connection.info.transaction_status is TransactionStatus.IDLE:
                    # What one handler has set is not for the next one.
                    plane.connection.execute("reset all")


@contextmanager
def completing(
    transactions: Transactions,
    standing: Standing,
    result: Callable[[], Json],
    connection: Any,
) -> Iterator[Any]:
    """Run a block under `guard` and complete the job in the same commit; see `Job.transaction`.

    `result` is asked when the block has ended.
    """
    with transactions.scope(connection) as scope:
        sent = time.monotonic()
        scope.begin()
        try:
            _guard(scope.plane, standing)
            standing.proved(sent)
            yield scope.given
            scope.flush()
            _complete(scope.plane, standing, result())
        except BaseException:
            scope.roll_back()
            raise
        try:
            scope.commit()
        except BaseException as error:
            refused = scope.refused(error)
            scope.roll_back()
            if refused:
                raise
            try:
                _resolve(transactions.result, standing, error)
                standing.ended = True
            finally:
                if not isinstance(error, Exception):
                    raise error
        standing.ended = True


def _guard(plane: ControlPlane, standing: Standing) -> None:
    lease = standing.lease
    try:
        plane.guard(lease.job_id, lease.worker_id, lease.token, lease_for=standing.lease_for)
    except LeaseLost:
        standing.lose("the token is not the current one")
        raise
    except CancelRequested:
        standing.request_cancel()
        raise


def _complete(plane: ControlPlane, standing: Standing, result: Json) -> None:
    """The last statement: proves ownership again, and raises unless it ended the job."""
    lease = standing.lease
    settled = plane.complete(lease.job_id, lease.worker_id, lease.token, result)
    if settled.verdict is Verdict.OK:
        return
    if settled.verdict is Verdict.CANCEL_REQUESTED:
        standing.request_cancel()
        raise CancelRequested(f"a cancellation of job {lease.job_id} was accepted")
    if settled.verdict is Verdict.DEFERRED:
        raise Busy(f"job {lease.job_id} is held by another transaction", hint="try again")
    standing.lose("the token is not the current one")
    raise LeaseLost(f"token {lease.token} of job {lease.job_id} was refused")


def _resolve(
    read: Callable[[int], JobResult | None], standing: Standing, error: BaseException
) -> None:
    """Find out what became of a COMMIT that was not answered; return when it took effect.

    The job is never completed again: the block's rows may be gone. The server may still be at
    work on that COMMIT; then the failure under the token, which waits for the row, is what is
    refused.
    """
    lease = standing.lease
    for pause in pauses(0.05, 5.0):
        why_lost = standing.lost
        try:
            found = read(lease.job_id)
        except Exception as again:
            logger.warning(
                "the commit of job %d was not answered, and the job cannot be read: %s",
                lease.job_id,
                again,
                extra=about(lease),
            )
        else:
            is_ours = found is not None and found.token == lease.token
            if found is not None and is_ours and found.status is JobStatus.COMPLETED:
                logger.info("job %d was completed by a commit that was not answered", lease.job_id)
                return
            if found is not None and not is_ours:
                standing.lose("the token is not the current one")
                raise LeaseLost(f"the lease on job {lease.job_id} is lost") from error
            break
        if why_lost is not None:
            raise LeaseLost(f"the lease on job {lease.job_id} is lost: {why_lost}") from error
        standing.wait_lost(pause)
    message = f"the commit of job {lease.job_id} was not answered and has not taken effect"
    standing.doubt = Failure(error_type=CommitInDoubt.__name__, message=f"{message}: {error}")
    raise CommitInDoubt(message) from error
