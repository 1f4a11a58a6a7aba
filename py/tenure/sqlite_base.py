"""What the parts of the SQLite control plane share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tenure import sqlite_file
from tenure.errors import Busy, InvalidArgument
from tenure.limits import check_job_id, check_token, check_worker_id
from tenure.sqlite_refusal import refused
from tenure.sqlite_transaction import Database, Transaction
from tenure.values import Settled

T = TypeVar("T")


def owner(job_id: int, worker_id: str, token: int) -> dict[str, Any]:
    """What a worker's verb shows, checked."""
    return {
        "job_id": check_job_id(job_id),
        "worker_id": check_worker_id(worker_id),
        "token": check_token(token),
    }


class Caller:
    """Holds the database; knows how long each kind of call waits for it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _read(self, work: Callable[[Transaction], T]) -> T:
        return self._database.read(work)

    def _write(self, work: Callable[[Transaction], T]) -> T:
        """Raises `Busy` when other writers were in the way for too long."""
        self._database.refuse_late()
        return self._database.write(work, patience=sqlite_file.PATIENCE)

    def _write_alone(self, verb: str, work: Callable[[Transaction], T]) -> T:
        self._refuse_to_join(verb)
        return self._write(work)

    def _write_or_read(
        self, write: Callable[[Transaction], T], read: Callable[[Transaction], T]
    ) -> T:
        """For an owner's verbs, which answer `deferred`: what `read` says when it is busy."""
        self._database.refuse_late()
        try:
            return self._database.write(write, patience=sqlite_file.WORKER_PATIENCE)
        except Busy:
            return self._database.read(read)

    def _verdict(
        self, verb: str, shown: dict[str, Any], write: Callable[[Transaction], Settled]
    ) -> Settled:
        return self._write_or_read(write, lambda t: refused(t, verb, **shown, busy=True))

    def _refuse_to_join(self, verb: str) -> None:
        if not self._database.alone:
            raise InvalidArgument(
                f"{verb} is called inside a transaction",
                hint="call it on a control plane that has the path, before or after",
            )
