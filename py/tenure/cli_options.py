"""Arguments that commands share, read from their text."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import click

from tenure.errors import InvalidArgument
from tenure.postgres_store import PostgresStore
from tenure.sqlite_store import SqliteStore
from tenure.store import open_store

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?P<number>\d+(\.\d+)?)(?P<unit>ms|s|m|h|d)")


def duration(text: str | timedelta) -> timedelta:
    """`500ms`, `90s`, `1.5m`, `2h`, `7d`, or several together, such as `1h30m`."""
    if isinstance(text, timedelta):  # a default
        return text
    parts = [*_DURATION.finditer(text)]
    if not parts or "".join(part[0] for part in parts) != text:
        raise click.BadParameter(f"{text!r} is no duration: write 500ms, 90s, 5m, 2h or 1h30m")
    try:
        return timedelta(
            seconds=sum(float(part["number"]) * _UNITS[part["unit"]] for part in parts)
        )
    except OverflowError:
        raise click.BadParameter(f"{text!r} is too long") from None


def moment(text: str) -> datetime:
    """An ISO 8601 time with its zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no time: write 2030-01-31T08:00:00Z") from None
    if found.utcoffset() is None:
        raise click.BadParameter(f"{text!r} has no time zone: write {text}Z for UTC")
    return found


def store_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --dsn and --schema, and call it with the `store` that they name."""

    @functools.wraps(command)
    def with_store(*args: Any, dsn: str | None, schema: str, **options: Any) -> Any:
        if dsn is None:
            raise click.UsageError("no database was named: pass --dsn or set TENURE_DSN")
        store = open_store(dsn, schema=schema)
        try:
            return command(*args, store=store, **options)
        finally:
            store.close()

    decorated: Callable[..., Any] = dsn_option(schema_option(with_store))
    return decorated


dsn_option: Callable[[Any], Any] = click.option(
    "--dsn",
    envvar="TENURE_DSN",
    show_envvar=True,
    help="postgresql://..., sqlite:///jobs.db, or an SQLite file's path.",
)

schema_option: Callable[[Any], Any] = click.option(
    "--schema",
    envvar="TENURE_SCHEMA",
    show_envvar=True,
    default="tenure",
    show_default=True,
    help="Where tenure lives in a PostgreSQL database.",
)


def checked(store: PostgresStore | SqliteStore) -> PostgresStore | SqliteStore:
    """The store, once it is known to be there and recent enough."""
    store.check()
    return store


def read_json(text: str, what: str) -> Any:
    """The value of a JSON text; raises `InvalidArgument` that says where it is not JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 10) : error.pos + 10]
        fault = error.msg.removesuffix(" starting at")
        raise InvalidArgument(
            f"{what} is not JSON at line {error.lineno}, column {error.colno}: {fault},"
            f" near {near!r}",
            hint="""a text needs quotes of its own: '"hello"'""",
        ) from None
    except RecursionError:
        raise InvalidArgument(f"{what} is nested too deep", hint="store it flatter") from None
    except ValueError as error:
        raise InvalidArgument(f"{what} is not JSON: {error}") from None
