"""The one connection of a migration, and the one transaction on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from .errors import Busy, InvalidArgument, ServerUnavailable

OLDEST_SERVER = 150000


@contextmanager
def in_a_transaction(dsn: str, schema: str) -> Iterator[Connection]:
    """One transaction on one connection, which SQLAlchemy is given rather than left to make."""
    raw = _connect(dsn)
    engine = create_engine("postgresql+psycopg://", creator=_giving(raw), poolclass=StaticPool)
    try:
        with engine.begin() as connection:
            yield connection
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.errors.LockNotAvailable):
            raise _busy(raw, schema) from None
        raise (error.orig or error) from None
    finally:
        engine.dispose()
        raw.close()


def _giving(raw: psycopg.Connection) -> Callable[[], psycopg.Connection]:
    return lambda: raw


def _connect(dsn: str) -> psycopg.Connection:
    try:
        parameters = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        raise InvalidArgument(f"malformed DSN: {_one_line(error)}") from None
    parameters.setdefault("connect_timeout", 10)
    try:
        # A pooler between transactions keeps no prepared statements.
        raw = psycopg.connect(**parameters, prepare_threshold=None)  # type: ignore[arg-type]
    except psycopg.OperationalError as error:
        raise ServerUnavailable(f"cannot connect: {_one_line(error)}") from None
    if raw.info.server_version < OLDEST_SERVER:
        version = raw.info.parameter_status("server_version")
        raw.close()
        raise ServerUnavailable(f"the server is PostgreSQL {version}; tenure needs 15 or newer")
    return raw


def _one_line(error: psycopg.Error) -> str:
    return " ".join(str(error).split())


def _busy(raw: psycopg.Connection, schema: str) -> Busy:
    """The error that names whose transaction has had a table of the schema for longest."""
    holder = raw.execute(
        """
        select a.pid, a.application_name, extract(epoch from clock_timestamp() - a.xact_start)::int
          from pg_locks as l
          join pg_class as c on c.oid = l.relation
          join pg_namespace as n on n.oid = c.relnamespace
          join pg_stat_activity as a on a.pid = l.pid and a.datname = current_database()
         where n.nspname = %s
           and l.granted
           and l.pid <> pg_backend_pid()
         order by a.xact_start
         limit 1
        """,
        (schema,),
    ).fetchone()
    if holder is None:
        return Busy(
            f"somebody held a table of schema {schema} for too long",
            hint="nothing was changed: run it again",
        )
    pid, name, seconds = holder
    return Busy(
        f"process {pid} ({name or 'unnamed'}) holds a table of schema {schema}"
        + (f", in a transaction of {seconds} s" if seconds is not None else ""),
        hint="nothing was changed: run it again after that transaction, or end it with"
        f" select pg_terminate_backend({pid})",
    )
