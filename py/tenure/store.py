"""Opens what a target names: a PostgreSQL database or an SQLite file."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from tenure.control_plane import ControlPlane
from tenure.errors import InvalidArgument
from tenure.limits import short
from tenure.postgres_store import PostgresStore
from tenure.records import Records
from tenure.sqlite_store import SqliteStore

SUFFIXES = (".db", ".sqlite", ".sqlite3")

_FORMS = (
    "postgresql://user@host/database, a libpq string such as 'host=db dbname=app', "
    "sqlite:///jobs.db, or a path that ends in .db, .sqlite or .sqlite3"
)


class OwnedControlPlane(ControlPlane, Protocol):
    """A control plane on a connection of its own."""

    def close(self) -> None: ...


class Store(Protocol):
    """Where jobs are kept; hands out control planes, one for each thread and purpose.

    Opening one touches nothing: the first method that needs the database raises
    `ServerUnavailable` or `SchemaOutdated` when there is none.
    """

    @property
    def kind(self) -> str:
        """`postgresql` or `sqlite`."""
        ...

    def control_plane(self) -> OwnedControlPlane:
        """A new one; whoever asked for it closes it."""
        ...

    def records(self) -> Records:
        """What people look at, on a connection that `close` closes."""
        ...

    def check(self) -> None:
        """Raise `ServerUnavailable` or `SchemaOutdated` unless jobs can be kept there now."""
        ...

    def install(self) -> str:
        """Make or bring up to date what is missing; the schema's version now."""
        ...

    def close(self) -> None:
        """Close what the store itself has open. It can be used again."""
        ...


def open_store(
    target: str, *, schema: str = "tenure", prepare_threshold: int | None = 5
) -> PostgresStore | SqliteStore:
    """The store that `target` names, in one of these forms:

    * `postgresql://…` or `postgres://…`;
    * a libpq connection string, which has a `=`: `host=db dbname=app`;
    * `sqlite:///jobs.db`, with one more slash for an absolute path;
    * a path that ends in .db, .sqlite or .sqlite3 and has no `=`.

    `schema` and `prepare_threshold` are for PostgreSQL; pass None as the latter behind a pooler
    that pools transactions. Raises `InvalidArgument` for any other target.
    """
    if not isinstance(target, str):
        raise InvalidArgument(f"the target is not a str: {short(target)}", hint=_FORMS)
    scheme, is_url, rest = target.partition("://")
    if is_url and scheme == "sqlite":
        # SQLAlchemy's rule: the first slash ends the part that would name a host.
        return SqliteStore(_path(rest[1:] if rest.startswith("/") else "", target))
    if is_url and scheme not in ("postgresql", "postgres") and "=" not in scheme:
        # What follows may hold a password: show the part that is wrong.
        raise InvalidArgument(f"the target begins with {short(scheme + '://')}", hint=_FORMS)
    if is_url or "=" in target:
        return PostgresStore(target, schema=schema, prepare_threshold=prepare_threshold)
    return SqliteStore(_path(target if target.endswith(SUFFIXES) else "", target))


def _path(path: str, target: str) -> Path:
    if path in ("", ":memory:") or path.endswith("/") or "?" in path or "\0" in path:
        raise InvalidArgument(f"the target is none: {short(target)}", hint=_FORMS)
    return Path(path)
