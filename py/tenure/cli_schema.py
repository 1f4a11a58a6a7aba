"""The commands that make tenure's tables, or print how."""

from __future__ import annotations

import click

from tenure.cli_options import schema_option, store_options
from tenure.install import install_script
from tenure.postgres_store import PostgresStore
from tenure.sqlite_store import SqliteStore


@click.command()
@click.option("--revision", default="head", show_default=True, help="Go no further than this.")
@store_options
def migrate(store: PostgresStore | SqliteStore, revision: str) -> None:
    """Make tenure's tables, or bring them up to date.

    Safe to run at any time, and by several at once. On PostgreSQL everything is made inside
    --schema, in one transaction.
    """
    if isinstance(store, SqliteStore):
        if revision != "head":
            raise click.UsageError("an SQLite file has no revisions to choose from")
        click.echo(f"{store.path} is at version {store.install()}")
        return
    from tenure.migrate import upgrade  # loads Alembic, which the other commands do without

    reached = upgrade(store.dsn, schema=store.schema, revision=revision)
    click.echo(f"schema {store.schema} is at revision {reached}")


@click.command()
@click.option("--revision", help="Print the migrations up to this one instead, as one script.")
@schema_option
def sql(schema: str, revision: str | None) -> None:
    """Print SQL that installs tenure, for those without Python.

    The script makes --schema, which may exist and must hold no tenure yet.
    """
    if revision is None:
        script = install_script(schema)
    else:
        from tenure.migrate import offline_sql  # loads Alembic

        script = offline_sql(schema=schema, revision=revision)
    click.echo(script, nl=False)
