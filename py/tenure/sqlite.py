"""The control plane in one SQLite file."""

from __future__ import annotations

import os
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Self

from tenure import sqlite_operate
from tenure.errors import InvalidArgument
from tenure.limits import MAX_ATTEMPTS, check_int, check_job_id, check_name
from tenure.sqlite_base import Caller
from tenure.sqlite_endings import SqliteEndings
from tenure.sqlite_file import SqliteFile
from tenure.sqlite_joined import Joined
from tenure.sqlite_leases import SqliteLeases
from tenure.sqlite_producer import SqliteProducer
from tenure.sqlite_schema import install
from tenure.sqlite_values import Clock, host_clock, moment
from tenure.values import JobAnswer, JobStatus, QueueAnswer


class SqliteControlPlane(SqliteProducer, SqliteLeases, SqliteEndings):
    """tenure in one SQLite file, which any number of processes may have open.

    Opening it makes the tables where there are none. Threads: any, each gets a connection of its
    own. One writer at a time has the file: an owner's verb that cannot have it within 2 s
    answers `deferred`, every other one raises `Busy` after 5 s.

    `clock` returns the present moment, aware; None: the host's clock, by which all leases are
    judged. Raises `ServerUnavailable` where the file is of no use, `SchemaOutdated` where its
    tables are of another version.
    """

    def __init__(self, path: str | os.PathLike[str], *, clock: Clock | None = None) -> None:
        file = SqliteFile(path, clock or host_clock)
        try:
            install(file)
        except BaseException:
            file.close()
            raise
        super().__init__(file)

    @classmethod
    def on(cls, connection: sqlite3.Connection, *, clock: Clock | None = None) -> Self:
        """The control plane inside the transactions of a connection that the caller owns.

        Never commits. For enqueue, enqueue_many, guard, the verbs for a single job and the
        operators' verbs; the others are refused. The file must have been opened by its path
        before. From SQLAlchemy pass `session.connection().connection.driver_connection`.
        """
        if not isinstance(connection, sqlite3.Connection):
            raise InvalidArgument(
                f"the connection is a {type(connection).__module__}.{type(connection).__name__}",
                hint="pass a sqlite3.Connection; from SQLAlchemy, "
                "session.connection().connection.driver_connection",
            )
        plane = cls.__new__(cls)
        Caller.__init__(plane, Joined(connection, clock or host_clock))
        return plane

    def cancel(self, job_id: int) -> JobAnswer:
        """Cancel a queued job now, a running one by request. Raises `JobUnknown`."""
        check_job_id(job_id)
        return self._write(lambda t: sqlite_operate.cancel(t, job_id))

    def retry(self, job_id: int, attempts: int = 1) -> JobAnswer:
        """Queue a failed or cancelled job again, with `attempts` more. Raises `JobUnknown`."""
        check_job_id(job_id)
        check_int(attempts, "attempts", 1, MAX_ATTEMPTS)
        return self._write(lambda t: sqlite_operate.retry(t, job_id, attempts))

    def pause(self, queue: str) -> QueueAnswer:
        """Stop claims from a queue; running jobs go on."""
        check_name(queue, "queue")
        return self._write(lambda t: sqlite_operate.pause(t, queue))

    def resume(self, queue: str) -> QueueAnswer:
        """Allow claims from a queue again."""
        check_name(queue, "queue")
        return self._write(lambda t: sqlite_operate.resume(t, queue))

    def maintain(self) -> list[str]:
        """Delete jobs that finished long ago: completed 7 days, failed and cancelled 30 days.

        In transactions of 1,000 jobs each, with their attempts. What was done, a line each.
        """
        done = []
        for status in sqlite_operate.KEPT:
            deleted = self._forget_old(status)
            if deleted:
                done.append(f"deleted {deleted} {status} jobs")
        return done

    def _forget_old(self, status: JobStatus) -> int:
        deleted = 0
        while True:
            batch = self._write_alone("maintain", lambda t: sqlite_operate.forget_old(t, status))
            deleted += batch
            if batch < sqlite_operate.BATCH:
                return deleted

    def now(self) -> datetime:
        """The present moment by the clock that judges leases."""
        return self._read(lambda t: moment(t.now))

    def data_version(self) -> int:
        """A number that moves with each commit by another connection to the file.

        Cheap: to be polled, and compared with earlier answers of the same thread only.
        """
        return self._file("data_version").data_version()

    @property
    def path(self) -> Path:
        """The file, as it was given."""
        return self._file("path").path

    def close(self) -> None:
        """Close the connections of all threads; a caller's connection is left alone."""
        if isinstance(self._database, SqliteFile):
            self._database.close()

    def _file(self, verb: str) -> SqliteFile:
        self._refuse_to_join(verb)
        assert isinstance(self._database, SqliteFile)
        return self._database
