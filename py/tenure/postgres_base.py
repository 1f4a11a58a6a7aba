"""What the parts of the PostgreSQL control plane share."""

from __future__ import annotations

from collections.abc import Sequence

from tenure import postgres_rows
from tenure.limits import check_job_id, check_token, check_worker_id
from tenure.postgres_call import Connection, Functions, Row
from tenure.values import Settled

OWNER = "p_job_id => %s::bigint, p_worker_id => %s::text, p_token => %s::bigint"


def owner(job_id: int, worker_id: str, token: int) -> tuple[int, str, int]:
    """The arguments of `OWNER`."""
    return check_job_id(job_id), check_worker_id(worker_id), check_token(token)


class Caller:
    """Holds the functions; knows which calls must be transactions of their own."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self._functions = Functions(connection, schema)

    def _alone(
        self, verb: str, columns: str, signature: str, arguments: Sequence[object]
    ) -> list[Row]:
        self._functions.alone(verb)
        return self._functions.rows(columns, f"{verb}({signature})", arguments)

    def _verdict(self, call: str, arguments: Sequence[object]) -> Settled:
        return postgres_rows.settled(self._functions.row(postgres_rows.VERDICT, call, arguments))
