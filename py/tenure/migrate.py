"""Brings a schema to a revision of migrations/, which travel inside the package."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import as_file
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from ._resources import migrations_root
from .errors import InvalidArgument, SchemaOutdated, ServerUnavailable
from .install import choose_schema, install_script

__all__ = ["downgrade", "install_script", "offline_sql", "upgrade"]

OLDEST_SERVER = 150000

# Alembic hands the connection to a migration through a global of its own.
_one_thread = threading.Lock()


def upgrade(dsn: str, *, schema: str = "tenure", revision: str = "head") -> str:
    """Bring a schema up to a revision, in one transaction; return the revision it is at now.

    Makes the schema when it is missing. Any number of processes may call this at once: they
    take turns, and the later ones find nothing left to do.

    Raises InvalidArgument for a malformed DSN or schema name or an unknown revision,
    ServerUnavailable when the database cannot be reached or is too old, SchemaOutdated when the
    schema is at a revision that this tenure does not know, and psycopg.Error for what the
    server refuses, such as missing rights. Nothing is changed then.
    """
    with _connected(dsn) as connection, _migrations() as (config, scripts):
        _choose(connection, schema)
        _refuse_strangers(connection, scripts, schema)
        config.attributes["connection"] = connection
        with _known(revision):
            command.upgrade(config, revision)
        return str(_current(connection))


def downgrade(dsn: str, *, schema: str = "tenure", revision: str) -> str | None:
    """Bring a schema back to an earlier revision; return it, or None after 'base'.

    'base' drops everything that tenure made, jobs included, and keeps the schema itself, which
    may hold other things. An object of somebody else's that depends on tenure's makes it fail.
    Raises as `upgrade` does.
    """
    with _connected(dsn) as connection, _migrations() as (config, scripts):
        _choose(connection, schema)
        _refuse_strangers(connection, scripts, schema)
        if _current(connection) is None:
            raise SchemaOutdated(f"there is no tenure in schema {schema}")
        config.attributes["connection"] = connection
        with _known(revision):
            command.downgrade(config, revision)
        current = _current(connection)
        if current is None:
            connection.exec_driver_sql("drop table alembic_version")
        return current


def offline_sql(*, schema: str = "tenure", revision: str = "head") -> str:
    """The script with which `upgrade` would bring an empty schema to a revision.

    Plain SQL with its own begin and commit, for whoever may not connect from Python. Raises
    InvalidArgument for a malformed schema name or an unknown revision.
    """
    script = io.StringIO()
    with _migrations(script) as (config, _), _known(revision):
        config.attributes["prelude"] = choose_schema(schema)
        command.upgrade(config, revision, sql=True)
    return script.getvalue()


@contextmanager
def _connected(dsn: str) -> Iterator[Connection]:
    """One transaction on one connection, which SQLAlchemy is given rather than left to make."""
    raw = _connect(dsn)
    engine = create_engine("postgresql+psycopg://", creator=_giving(raw), poolclass=StaticPool)
    try:
        with engine.begin() as connection:
            yield connection
    except DBAPIError as error:
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


@contextmanager
def _migrations(output: io.StringIO | None = None) -> Iterator[tuple[Config, ScriptDirectory]]:
    with _one_thread, as_file(migrations_root()) as location:
        config = Config(output_buffer=output or io.StringIO())  # there is no alembic.ini
        config.set_main_option("script_location", _escaped(location))
        config.set_main_option("path_separator", "os")
        yield config, ScriptDirectory.from_config(config)


def _escaped(location: Path) -> str:
    return str(location).replace("%", "%%")


@contextmanager
def _known(revision: str) -> Iterator[None]:
    try:
        yield
    except CommandError:
        raise InvalidArgument(f"there is no revision {revision!r}") from None


def _choose(connection: Connection, schema: str) -> None:
    connection.exec_driver_sql(choose_schema(schema), execution_options={"no_parameters": True})


def _current(connection: Connection) -> str | None:
    table = connection.exec_driver_sql(
        "select to_regclass(quote_ident(current_schema()) || '.alembic_version') is not null"
    ).scalar_one()
    if not table:
        return None
    row = connection.exec_driver_sql("select version_num from alembic_version").first()
    return str(row[0]) if row else None


def _refuse_strangers(connection: Connection, scripts: ScriptDirectory, schema: str) -> None:
    """Stop before touching a version table that is newer, or that another project keeps."""
    current = _current(connection)
    if current is None:
        return
    ours = connection.exec_driver_sql(
        "select to_regclass(quote_ident(current_schema()) || '.job_history') is not null"
    ).scalar_one()
    if not ours:
        raise InvalidArgument(
            f"schema {schema} holds the migrations of another project",
            hint="choose a schema that is tenure's own",
        )
    if current not in {script.revision for script in scripts.walk_revisions()}:
        raise SchemaOutdated(
            f"schema {schema} is at revision {current}, which this tenure does not know",
            hint="install the newer tenure",
        )
