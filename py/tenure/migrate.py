"""Brings a schema to a revision of migrations/, which travel inside the package."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection

from ._resources import migrations_root
from .errors import InvalidArgument, SchemaOutdated
from .install import choose_schema, install_script
from .migrate_session import in_a_transaction

__all__ = ["downgrade", "install_script", "offline_sql", "upgrade"]

# Whoever comes behind a migration that waits for a table waits with it. Long enough for the
# server to send a vacuum out of the way, which it does after one second.
LOCK_TIMEOUT = "2s"

# Alembic hands the connection to a migration through a global of its own.
_one_thread = threading.Lock()


def upgrade(dsn: str, *, schema: str = "tenure", revision: str = "head") -> str:
    """Bring a schema up to a revision, in one transaction; return the revision it is at now.

    Makes the schema when it is missing. Any number of processes may call this at once: they
    take turns, and the later ones find nothing left to do. Workers may go on meanwhile: a table
    that a long transaction holds is waited for at most 2 s, or the lock_timeout that the DSN sets
    in its options, and claims behind it wait no longer than that.

    Raises InvalidArgument for a malformed DSN or schema name or an unknown revision,
    ServerUnavailable when the database cannot be reached or is too old, SchemaOutdated when the
    schema is at a revision that this tenure does not know, Busy when a table stayed locked, and
    psycopg.Error for what the server refuses, such as missing rights. Nothing is changed then.
    """
    with in_a_transaction(dsn, schema) as connection, _migrations() as (config, scripts):
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
    with in_a_transaction(dsn, schema) as connection, _migrations() as (config, scripts):
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
    connection.exec_driver_sql(
        f"select set_config('lock_timeout', '{LOCK_TIMEOUT}', true)"
        " where current_setting('lock_timeout') = '0'"
    )


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
