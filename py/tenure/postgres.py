"""The control plane in PostgreSQL: each method is one call of one function."""

from __future__ import annotations

from collections.abc import Sequence

from tenure import postgres_rows
from tenure.limits import MAX_ATTEMPTS, check_int, check_job_id, check_name
from tenure.postgres_call import Connection
from tenure.postgres_endings import PostgresEndings
from tenure.postgres_leases import PostgresLeases
from tenure.postgres_producer import PostgresProducer
from tenure.values import JobAnswer, QueueAnswer


class PostgresControlPlane(PostgresProducer, PostgresLeases, PostgresEndings):
    """tenure in one schema of a PostgreSQL database, over a connection its caller owns.

    Never commits and never rolls back: enqueueing a job in the transaction that made it
    necessary is the reason to keep jobs in the database. For the same reason claim, claim_job,
    renew, reclaim, settle and sweep refuse a connection on which they would leave a transaction
    open; `guard` wants one that is open.

    Use a connection with `prepare_threshold=None` behind a pooler that pools transactions. One
    control plane is for one thread at a time, as its connection should be.
    """

    def __init__(self, connection: Connection, *, schema: str = "tenure") -> None:
        super().__init__(connection, schema)

    def cancel(self, job_id: int) -> JobAnswer:
        """Cancel a queued job now, a running one by request. Raises `JobUnknown`."""
        return self._job_answer("cancel(p_job_id => %s::bigint)", (check_job_id(job_id),))

    def retry(self, job_id: int, attempts: int = 1) -> JobAnswer:
        """Queue a failed or cancelled job again, with `attempts` more. Raises `JobUnknown`."""
        return self._job_answer(
            "retry(p_job_id => %s::bigint, p_attempts => %s::int)",
            (check_job_id(job_id), check_int(attempts, "attempts", 1, MAX_ATTEMPTS)),
        )

    def pause(self, queue: str) -> QueueAnswer:
        """Stop claims from a queue; running jobs go on."""
        return self._queue_answer("pause", queue)

    def resume(self, queue: str) -> QueueAnswer:
        """Allow claims from a queue again."""
        return self._queue_answer("resume", queue)

    def _job_answer(self, call: str, arguments: Sequence[object]) -> JobAnswer:
        row = self._functions.row(postgres_rows.JOB_ANSWER, call, arguments)
        return postgres_rows.job_answer(row)

    def _queue_answer(self, verb: str, queue: str) -> QueueAnswer:
        row = self._functions.row(
            postgres_rows.QUEUE_ANSWER,
            f"{verb}(p_queue => %s::text)",
            (check_name(queue, "queue"),),
        )
        return postgres_rows.queue_answer(row)
