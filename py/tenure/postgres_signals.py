"""What a runner asks of PostgreSQL besides the control plane: whom to wake, when to wake."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from tenure import limits
from tenure.limits import check_name, check_queues, check_worker_id
from tenure.postgres_call import Connection, Functions
from tenure.requests import json_text
from tenure.values import Json


class PostgresSignals:
    """One call of one function each, over an autocommit connection its caller owns.

    The sleeper's calls and `listen` belong to one connection that lives as long as the sleep:
    the keys of `sleep_begin` are the session's.
    """

    def __init__(self, connection: Connection, *, schema: str = "tenure") -> None:
        self._functions = Functions(connection, schema)

    def schema_version(self) -> str:
        return str(self._functions.value("schema_version()"))

    def channel(self) -> str:
        """Where notifications come: `q<queue_key>` and `q*` to wake, `c<job_id>` to cancel,
        `d<job_id>` when a job has ended."""
        return str(self._functions.value("channel()"))

    def queue_key(self, queue: str) -> int:
        return int(
            self._functions.value("queue_key(p_queue => %s::text)", (check_name(queue, "queue"),))
        )

    def listen(self) -> bool:
        """Listen on the channel; False behind a pooler that forgets it between transactions."""
        self._functions.alone("listen")
        channel = self.channel()
        self._functions.connection.execute(f'listen "{channel}"')
        return bool(
            self._functions.query(
                "select exists (select from pg_catalog.pg_listening_channels() as c where c = %s)",
                (channel,),
            )[0][0]
        )

    def sleep_begin(self, queues: Sequence[str]) -> int | None:
        """Show producers that this session sleeps; the horizon to wait for, or None: poll."""
        self._functions.alone("sleep_begin")
        horizon: int | None = self._functions.value(
            "sleep_begin(p_queues => %s::text[])", (check_queues(queues),)
        )
        return horizon

    def wait_begin(self, job_ids: Sequence[int]) -> int | None:
        """Show whoever ends one of these jobs that this session waits; as `sleep_begin`."""
        self._functions.alone("wait_begin")
        horizon: int | None = self._functions.value(
            "wait_begin(p_job_ids => %s::bigint[])", (list(job_ids),)
        )
        return horizon

    def sleep_settled(self, horizon: int) -> bool:
        """Whether every writer has ended that may not have seen the sleeper, or the waiter."""
        self._functions.alone("sleep_settled")
        return bool(self._functions.value("sleep_settled(p_horizon => %s::bigint)", (horizon,)))

    def sleep_end(self) -> None:
        """Stop being woken."""
        self._functions.value("sleep_end()")

    def next_due(self, queues: Sequence[str]) -> timedelta | None:
        """How long until a job of these queues is due; not above 0 when one was skipped."""
        due_in: timedelta | None = self._functions.row(
            "due_in", "next_due(p_queues => %s::text[])", (check_queues(queues),)
        )[0]
        return due_in

    def wake(self, queues: Sequence[str]) -> None:
        """Wake whoever sleeps on these queues: for jobs enqueued with `notify=False`."""
        self._functions.value("wake(p_queues => %s::text[])", (check_queues(queues),))

    def worker_seen(self, worker_id: str, queues: Sequence[str], info: Json = None) -> None:
        """Note for people that a worker is alive."""
        self._functions.value(
            "worker_seen(p_worker_id => %s::text, p_queues => %s::text[], p_info => %s::jsonb)",
            (
                check_worker_id(worker_id),
                check_queues(queues),
                json_text(info, "info", limits.META_BYTES),
            ),
        )

    def maintain(self) -> list[str]:
        """Make partitions, drop what is past keeping; says what was done."""
        self._functions.alone("maintain")
        return [str(row[0]) for row in self._functions.rows("*", "maintain()")]
