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
from tenure.sqlite import SqliteControlPlane

_KINDS = (
    "pass a psycopg.Connection, a sqlite3.Connection, or SQLAlchemy's Connection or Session over "
    "one of them"
)


def joined_plane(connection: Any, *, kind: str, schema: str) -> ControlPlane:
    """A control plane inside the transaction of `connection`, which is never committed here.

    `kind` is the kind of store that the jobs belong to. Raises `InvalidArgument` for another
    kind of connection, and for one in autocommit mode outside a transaction: there would be
    nothing to join, and the job would be committed on its own.
    """
    raw = _driver_connection(connection)
    if isinstance(raw, psycopg.Connection) and kind == "postgresql":
        if raw.autocommit and raw.info.transaction_status is TransactionStatus.IDLE:
            raise _nothing_to_join()
        return PostgresControlPlane(raw, schema=schema)
    if isinstance(raw, sqlite3.Connection) and kind == "sqlite":
        if _commits_by_itself(raw) and not raw.in_transaction:
            raise _nothing_to_join()
        return SqliteControlPlane.on(raw)
    raise InvalidArgument(
        f"a job of a {kind} store cannot be enqueued over a"
        f" {type(raw).__module__}.{type(raw).__qualname__}",
        hint=_KINDS,
    )


def _driver_connection(connection: Any) -> Any:
    if "sqlalchemy" not in sys.modules:
        return connection  # so it is none of SQLAlchemy's, which takes a while to import
    from sqlalchemy import Connection
    from sqlalchemy.orm import Session

    if isinstance(connection, Session):
        connection = connection.connection()
    if isinstance(connection, Connection):
        if not connection.in_transaction():
            # As its own first statement would: else its commit would know of nothing to commit.
            connection.begin()
        return connection.connection.driver_connection
    return connection


def _commits_by_itself(raw: sqlite3.Connection) -> bool:
    autocommit = getattr(raw, "autocommit", -1)  # from Python 3.12 on; -1: isolation_level rules
    return raw.isolation_level is None if autocommit == -1 else bool(autocommit)


def _nothing_to_join() -> InvalidArgument:
    return InvalidArgument(
        "the connection is in autocommit mode and in no transaction, so there is none to join",
        hint="begin a transaction, or leave connection= out",
    )
