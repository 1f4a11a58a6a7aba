"""A PostgreSQL database as a store: connections of tenure's own."""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tenure._resources import sql_root
from tenure.bounded import BoundedConnection
from tenure.errors import InvalidArgument, SchemaOutdated, ServerUnavailable
from tenure.install import checked_schema
from tenure.postgres import PostgresControlPlane
from tenure.postgres_call import MIGRATE, Connection, one_line
from tenure.postgres_records import PostgresRecords
from tenure.postgres_signals import PostgresSignals

OLDEST_SERVER = 150000

# A peer that vanished is noticed within 30 s, the length of a lease; what the target says wins.
_PARAMETERS: dict[str, Any] = {
    "connect_timeout": 10,
    "client_encoding": "utf8",
    "fallback_application_name": "tenure",
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}


class OwnedPostgresControlPlane(PostgresControlPlane):
    """A control plane that has its connection for itself."""

    def __init__(self, connection: Connection, *, schema: str = "tenure") -> None:
        super().__init__(connection, schema=schema)
        self.connection = connection

    def close(self) -> None:
        self.connection.close()


class PostgresStore:
    """One schema of one database."""

    kind = "postgresql"

    def __init__(
        self, dsn: str, *, schema: str = "tenure", prepare_threshold: int | None = 5
    ) -> None:
        try:
            given = conninfo_to_dict(dsn)
        except psycopg.ProgrammingError as error:
            raise InvalidArgument(f"malformed DSN: {one_line(error)}") from None
        self.dsn = dsn
        self.schema = checked_schema(schema)
        self._parameters = {**_PARAMETERS, **given}
        self._prepare_threshold = prepare_threshold
        self._own: Connection | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_own": None}  # what is open stays in this process

    def connect(self) -> BoundedConnection:
        """A new connection in autocommit mode, for one thread; whoever asked for it closes it.

        Raises `ServerUnavailable`, in one line, also for a server older than 15.
        """
        try:
            connection = BoundedConnection.connect(
                **self._parameters, autocommit=True, prepare_threshold=self._prepare_threshold
            )
        except psycopg.OperationalError as error:
            raise ServerUnavailable(f"cannot connect: {one_line(error)}") from None
        except psycopg.ProgrammingError as error:
            raise InvalidArgument(f"malformed DSN: {one_line(error)}") from None
        if connection.info.server_version < OLDEST_SERVER:
            version = connection.info.parameter_status("server_version")
            connection.close()
            raise ServerUnavailable(f"the server is PostgreSQL {version}; tenure needs 15 or newer")
        return connection

    def control_plane(self) -> OwnedPostgresControlPlane:
        """A new one on a connection of its own; whoever asked for it closes it."""
        return OwnedPostgresControlPlane(self.connect(), schema=self.schema)

    def records(self) -> PostgresRecords:
        """What people look at, on the store's own connection."""
        return PostgresRecords(self._own_connection(), schema=self.schema)

    def signals(self) -> PostgresSignals:
        """Waking and looking after the schema, on the store's own connection; not for sleeping."""
        return PostgresSignals(self._own_connection(), schema=self.schema)

    def check(self) -> None:
        """Raise `ServerUnavailable` or `SchemaOutdated` unless jobs can be kept there now."""
        version = self.signals().schema_version()
        if version < client_version():
            raise SchemaOutdated(
                f"schema {self.schema} is at version {version}, this tenure needs"
                f" {client_version()}",
                hint=MIGRATE,
            )

    def install(self) -> str:
        """Make the schema or bring it up to date; its version now."""
        from tenure.migrate import upgrade  # loads Alembic, which few callers need

        return upgrade(self.dsn, schema=self.schema)

    def close(self) -> None:
        """Close the store's own connection. A later call opens it again."""
        if self._own is not None:
            self._own.close()
            self._own = None

    def _own_connection(self) -> Connection:
        if self._own is None or self._own.closed:
            self._own = self.connect()
        return self._own


def client_version() -> str:
    """The version of the schema that this tenure was written for."""
    text = sql_root().joinpath("version.sql").read_text(encoding="utf-8")
    found = re.search(r"values \('(\w+)'\)", text)
    assert found is not None
    return found[1]
