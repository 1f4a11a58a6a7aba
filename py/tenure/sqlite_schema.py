"""The tables in a SQLite file: made once, their version checked by everyone."""

from __future__ import annotations

import sqlite3
from importlib.resources import files

from tenure.errors import SchemaOutdated
from tenure.sqlite_file import PATIENCE, SqliteFile
from tenure.sqlite_transaction import Transaction

VERSION = 1

INSTALLED = "select 1 from sqlite_master where type = 'table' and name = 'tenure_install'"
STORED_VERSION = "select schema_version from tenure_install"
STORE_VERSION = "insert into tenure_install (schema_version) values (:version)"


def install(file: SqliteFile) -> None:
    """Make the tables where there are none, all or nothing; any number of processes at once.

    Raises `SchemaOutdated` when the file has them in another version.
    """
    if file.read(version) is None:
        file.write(_create, patience=PATIENCE)
    found = file.read(version)
    if found != VERSION:
        raise SchemaOutdated(
            f"{file.path} has version {found} of the tenure tables, this client has {VERSION}",
            hint="upgrade the client" if found and found > VERSION else "start with a new file",
        )


def version(t: Transaction) -> int | None:
    """The stored version of the tables; None where there are none."""
    if t.one(INSTALLED) is None:
        return None
    row = t.one(STORED_VERSION)
    return None if row is None else int(row["schema_version"])


def _create(t: Transaction) -> None:
    if t.one(INSTALLED) is None:
        for statement in _statements(files("tenure").joinpath("sqlite.sql").read_text("utf-8")):
            t.all(statement)
        t.all(STORE_VERSION, version=VERSION)


def _statements(script: str) -> list[str]:
    """One by one, because `executescript` would commit the transaction first."""
    statements, statement = [], ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            statements.append(statement)
            statement = ""
    return statements
