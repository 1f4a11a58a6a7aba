"""One call of one of tenure's functions over a connection that its caller owns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from tenure import errors
from tenure.errors import InvalidArgument, SchemaOutdated, ServerUnavailable, TenureError
from tenure.install import checked_schema

Connection: TypeAlias = psycopg.Connection[Any]
AnyConnection: TypeAlias = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]
Row: TypeAlias = tuple[Any, ...]
T = TypeVar("T")


class Call(NamedTuple, Generic[T]):
    """One call of a function, and how to read its answer: over whatever connection."""

    columns: str
    function: str
    """Such as `held(p_worker_id => %s::text)`."""
    arguments: Sequence[object]
    read: Callable[[list[Row]], T]

    def query(self, prefix: str) -> str:
        return f"select {self.columns} from {prefix}{self.function}"


BY_SQLSTATE: dict[str, type[TenureError]] = {
    error.sqlstate: error
    for error in vars(errors).values()
    if isinstance(error, type) and issubclass(error, TenureError) and error.sqlstate is not None
}

# undefined_table, _column, _object and _function; invalid_schema_name
_MISSING = {"42P01", "42703", "42704", "42883", "3F000"}
# The server ended the session, or did not let one begin.
_ENDED = {"57P01", "57P02", "57P03", "57P05", "25P03", "53300"}


class Functions:
    """tenure's functions in one schema.

    Never commits, never rolls back, never tries again. The connection's row factory, cursor
    class and date style do not matter, and its `prepare_threshold` is the caller's to choose.
    """

    def __init__(self, connection: Connection, schema: str) -> None:
        if not isinstance(connection, psycopg.Connection):
            raise InvalidArgument(
                f"the connection is a {type(connection).__module__}.{type(connection).__name__}",
                hint="pass a psycopg.Connection; from SQLAlchemy, "
                "session.connection().connection.driver_connection",
            )
        self.connection = connection
        self.schema = checked_schema(schema)
        self.prefix = f"{quoted(schema)}."

    def answer(self, call: Call[T]) -> T:
        return call.read(self.query(call.query(self.prefix), call.arguments))

    def rows(self, columns: str, call: str, arguments: Sequence[object] = ()) -> list[Row]:
        """The columns of what a call such as `held(p_worker_id => %s::text)` returns."""
        return self.query(f"select {columns} from {self.prefix}{call}", arguments)

    def row(self, columns: str, call: str, arguments: Sequence[object] = ()) -> Row:
        return self.rows(columns, call, arguments)[0]

    def value(self, call: str, arguments: Sequence[object] = ()) -> Any:
        return self.row("*", call, arguments)[0]

    def query(self, query: str, arguments: Sequence[object] = ()) -> list[Row]:
        # Not connection.cursor(): that is whatever cursor class the caller prefers. Binary
        # results, because the text of a time depends on settings of the session.
        try:
            with psycopg.Cursor(self.connection, row_factory=tuple_row) as cursor:
                return cursor.execute(query, arguments, binary=True).fetchall()
        except psycopg.Error as error:
            if (known := _known(error, self.connection, self.schema)) is None:
                raise
            raise known from error

    def alone(self, verb: str) -> None:
        """Refuse a connection on which the call would not be a transaction of its own."""
        if not self.connection.autocommit:
            raise InvalidArgument(
                f"{verb} needs a connection in autocommit mode",
                hint="psycopg.connect(..., autocommit=True); only enqueue, guard and the verbs "
                "for a single job may join a transaction",
            )
        if self.connection.info.transaction_status in (
            TransactionStatus.INTRANS,
            TransactionStatus.INERROR,
        ):
            raise InvalidArgument(
                f"{verb} is called inside a transaction", hint="call it before or after"
            )

    def together(self, verb: str) -> None:
        """Refuse a connection on which the call would be a transaction of its own."""
        if (
            self.connection.autocommit
            and self.connection.info.transaction_status is TransactionStatus.IDLE
        ):
            raise InvalidArgument(
                f"{verb} is called outside a transaction, where it protects nothing",
                hint="call it first inside: with connection.transaction()",
            )


@contextmanager
def translated(connection: AnyConnection | None = None, schema: str = "tenure") -> Iterator[None]:
    """Raise what tenure's functions raise as its classes, and let everything else through.

    Serialization failures above all: those are for whoever owns the transaction.
    """
    try:
        yield
    except psycopg.Error as error:
        if (known := _known(error, connection, schema)) is None:
            raise
        raise known from error


def _known(
    error: psycopg.Error, connection: AnyConnection | None, schema: str
) -> TenureError | None:
    code = error.sqlstate
    if code in BY_SQLSTATE:
        return BY_SQLSTATE[code](
            error.diag.message_primary or str(error), hint=error.diag.message_hint
        )
    if code in _MISSING and (
        # Without a context it is the call itself that found nothing to call.
        error.diag.context is None or schema in (error.diag.message_primary or "")
    ):
        return SchemaOutdated(f"no tenure, or an older one, in schema {schema}", hint=MIGRATE)
    if _is_outage(error, code, connection):
        return ServerUnavailable(one_line(error))
    return None


MIGRATE = "run: tenure migrate"


def is_refusal(error: BaseException) -> bool:
    """Whether the server said no and went on listening: what it was asked for did not happen."""
    code = error.sqlstate if isinstance(error, psycopg.Error) else None
    return code is not None and not _ends_session(code)


def _ends_session(code: str) -> bool:
    return code.startswith("08") or code in _ENDED


def _is_outage(error: psycopg.Error, code: str | None, connection: AnyConnection | None) -> bool:
    if code is not None:
        return _ends_session(code)
    if isinstance(error, psycopg.OperationalError):
        return True
    return connection is not None and connection.closed


def one_line(error: psycopg.Error) -> str:
    """The first line of an error: the rest of psycopg's repeats it for each address."""
    text = error.diag.message_primary or str(error)
    return text.strip().split("\n")[0].strip() or type(error).__name__


def quoted(name: str) -> str:
    """An identifier, for a query with placeholders."""
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'


def seconds(value: timedelta | None) -> str | None:
    """A duration as an interval without days, which are 23 hours long twice a year somewhere."""
    if value is None:
        return None
    whole = value.days * 86_400 + value.seconds
    return f"{whole}.{value.microseconds:06d} seconds"


def plain_array(values: Iterable[str]) -> str:
    """The text of an array whose members need no quotes: an eighth of what psycopg takes."""
    return "{" + ",".join(values) + "}"


def iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def utc(value: datetime | None) -> datetime | None:
    return None if value is None else value.astimezone(UTC)
