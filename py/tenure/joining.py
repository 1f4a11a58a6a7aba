"""A caller's connection, so that jobs are enqueued in the caller's transaction."""

from __future__ import annotations

import sqlite3
import sys
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from tenure.control_plane import ControlPlane
from tenure.errors import InvalidArgument
from tenure.postgres import PostgresControlPlane
from tenure.postgres_call import AnyConnection
from tenure.sqlite import SqliteControlPlane

_KINDS = (
    "pass a psycopg.Connection, a sqlite3.Connection, or SQLAlchemy's Connection or Session over "
    "one of them"
)
_ASYNC_KINDS = (
    "pass a psycopg.AsyncConnection, SQLAlchemy's AsyncConnection or AsyncSession over one, or a "
    "sqlite3.Connection"
)
_OF_THE_OTHER_APP = (
    "an async connection is for AsyncTenure, any other for Tenure and job.transaction()"
)


def joined_plane(connection: Any, *, kind: str, schema: str) -> ControlPlane:
    """A control plane inside the transaction of `connection`, which is never committed here.

    `kind` is the kind of store that the jobs belong to. Raises `InvalidArgument` for another
    kind of connection, and for one in autocommit mode outside a transaction: there would be
    nothing to join, and the job would be committed on its own.
    """
    raw = begun(connection)
    plane = plane_over(raw, kind=kind, schema=schema)
    if isinstance(raw, psycopg.Connection):
        refuse_without_transaction(raw)
    elif _commits_by_itself(raw) and not raw.in_transaction:
        raise _nothing_to_join()
    return plane


def plane_over(raw: Any, *, kind: str, schema: str) -> ControlPlane:
    """A control plane over a driver's connection. Raises `InvalidArgument` for another kind."""
    if isinstance(raw, psycopg.Connection) and kind == "postgresql":
        return PostgresControlPlane(raw, schema=schema)
    if isinstance(raw, sqlite3.Connection) and kind == "sqlite":
        return SqliteControlPlane.on(raw)
    raise not_joinable(raw, kind=kind, for_async=False)


def begun(connection: Any) -> Any:
    """The driver's connection below what SQLAlchemy has, in a transaction that SQLAlchemy knows.

    Without the latter its commit would know of nothing to commit.
    """
    connection = unscoped(connection)
    if is_sqlalchemy(connection) and not connection.in_transaction():
        connection.begin()
    return driver_connection(connection)


def driver_connection(connection: Any) -> Any:
    """What is below SQLAlchemy's Connection or Session; anything else as it is."""
    if not is_sqlalchemy(connection):
        return connection
    from sqlalchemy.orm import Session

    if isinstance(connection, Session):
        connection = connection.connection()
    return connection.connection.driver_connection


def is_sqlalchemy(connection: Any) -> bool:
    if "sqlalchemy" not in sys.modules:
        return False  # so it is none of SQLAlchemy's, which takes a while to import
    from sqlalchemy import Connection
    from sqlalchemy.orm import Session

    return isinstance(connection, Connection | Session)


def unscoped(connection: Any) -> Any:
    """The session of this thread or task, of a registry of SQLAlchemy's; else what was given."""
    if "sqlalchemy" not in sys.modules:
        return connection
    from sqlalchemy.ext.asyncio import async_scoped_session
    from sqlalchemy.orm import scoped_session

    if isinstance(connection, scoped_session | async_scoped_session):
        return connection()
    return connection


def refuse_without_transaction(raw: AnyConnection) -> None:
    if raw.autocommit and raw.info.transaction_status is TransactionStatus.IDLE:
        raise _nothing_to_join()


def not_joinable(raw: Any, *, kind: str, for_async: bool) -> InvalidArgument:
    theirs = psycopg.Connection if for_async else psycopg.AsyncConnection
    of_other_app = kind == "postgresql" and isinstance(raw, theirs)
    return InvalidArgument(
        f"a job of a {kind} store cannot be written over a"
        f" {type(raw).__module__}.{type(raw).__qualname__}",
        hint=_OF_THE_OTHER_APP if of_other_app else _ASYNC_KINDS if for_async else _KINDS,
    )


def _commits_by_itself(raw: sqlite3.Connection) -> bool:
    autocommit = getattr(raw, "autocommit", -1)  # from Python 3.12 on; -1: isolation_level rules
    return raw.isolation_level is None if autocommit == -1 else bool(autocommit)


def _nothing_to_join() -> InvalidArgument:
    return InvalidArgument(
        "the connection is in autocommit mode and in no transaction, so there is none to join",
        hint="begin a transaction, or leave connection= out",
    )
