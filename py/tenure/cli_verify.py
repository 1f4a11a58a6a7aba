"""The command that tests somebody's database against the contract."""

from __future__ import annotations

import click
import psycopg

from tenure.cli_options import dsn_option
from tenure.cli_output import json_option, print_json
from tenure.errors import InvalidArgument, TenureError
from tenure.postgres_store import PostgresStore
from tenure.store import open_store
from tenure.verify.report import counts, print_end, print_matrix
from tenure.verify.run import PARTS, verify


class CouldNotRun(click.ClickException):
    """Nothing was verified."""

    exit_code = 2


@click.command(name="verify")
@dsn_option
@click.option(
    "--schema",
    help="Test the install in this schema, in queues of its own.  [default: a scratch schema that"
    " is dropped at the end]",
)
@click.option("--only", type=click.Choice(PARTS), help="Play one part of it.")
@click.option(
    "--strict", is_flag=True, help="Let cells that are not possible here count as failed."
)
@json_option
def verify_command(
    dsn: str | None, schema: str | None, only: str | None, strict: bool, as_json: bool
) -> int:
    """Test a PostgreSQL database for stale workers, cell by cell.

    Every worker's verb is called by everybody who lost the lease, and by its owner; jobs are
    cancelled in every state; a listener waits for what writes must bring; two sessions race.
    Plain SQL only. Exit code 0: all as it must be; 1: a cell failed; 2: it could not run.
    """
    if dsn is None:
        raise click.UsageError("no database was named: pass --dsn or set TENURE_DSN")
    try:
        if not isinstance(open_store(dsn), PostgresStore):
            raise InvalidArgument(
                "verify is for PostgreSQL: it tests the functions inside a database, and an SQLite"
                " file has none",
                hint="name a postgresql://... database",
            )
        report = verify(dsn, schema=schema, part=only, told=_silently if as_json else print_matrix)
    except TenureError as error:
        raise CouldNotRun(str(error)) from None
    except psycopg.Error as error:
        raise CouldNotRun(f"the database refuses: {error}") from None
    count = counts(report)
    if as_json:
        print_json({"counts": count, **{f: getattr(report, f) for f in report.__slots__}})
    else:
        print_end(report)
    return 1 if count.failed or (strict and count.not_possible) else 0


def _silently(*_: object) -> None:
    pass
