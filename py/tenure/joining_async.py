"""A caller's asyncio connection, so that jobs are enqueued in the caller's transaction."""

from __future__ import annotations

import sqlite3
import sys
from typing import Any, TypeVar

import psycopg
from psycopg.rows import tuple_row

from tenure.joining import not_joinable, refuse_without_transaction, unscoped
from tenure.postgres_call import Call, quoted, translated

T = TypeVar("T")


async def joinable(connection: Any, *, kind: str) -> psycopg.AsyncConnection[Any] | Any:
    """The psycopg connection below what was given, or a sqlite3 connection as it is.

    Nothing is committed here. Raises `InvalidArgument` for another kind of connection, and for
    one in autocommit mode outside a transaction.
    """
    raw = await _driver_connection(unscoped(connection))
    if isinstance(raw, psycopg.AsyncConnection) and kind == "postgresql":
        refuse_without_transaction(raw)
        return raw
    if isinstance(raw, sqlite3.Connection) and kind == "sqlite":
        return raw
    raise not_joinable(raw, kind=kind, for_async=True)


async def answer(connection: psycopg.AsyncConnection[Any], schema: str, call: Call[T]) -> T:
    """Make one call. Never commits, never rolls back, never tries again."""
    with translated(connection, schema):
        async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
            query = call.query(f"{quoted(schema)}.")
            await cursor.execute(query.encode(), call.arguments, binary=True)
            return call.read(await cursor.fetchall())


async def _driver_connection(connection: Any) -> Any:
    if "sqlalchemy" not in sys.modules:
        return connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession

    if isinstance(connection, AsyncSession):
        connection = await connection.connection()
    if isinstance(connection, AsyncConnection):
        if not connection.in_transaction():
            # As its own first statement would: else its commit would know of nothing to commit.
            await connection.begin()
        return (await connection.get_raw_connection()).driver_connection
    return connection
