"""The command `tenure`: installs, enqueues, works, and shows what is there.

Exit codes: 0 done, or done already; 1 refused or failed, with one line on standard error; 2 for
a command line that cannot be understood; 130 after Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click
import psycopg

from tenure.cli_enqueue import enqueue
from tenure.cli_operate import cancel, pause, resume, retry, sweep
from tenure.cli_output import one_line
from tenure.cli_read import jobs, queues, show
from tenure.cli_schema import migrate, sql
from tenure.cli_verify import verify_command
from tenure.cli_worker import worker
from tenure.errors import TenureError

INTERRUPTED = 130


@click.group(
    no_args_is_help=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="tenure")
@click.pass_context
def commands(context: click.Context) -> None:
    """Durable jobs with leases, in PostgreSQL or SQLite.

    Every command takes --dsn, or reads TENURE_DSN: postgresql://..., sqlite:///jobs.db, or the
    path of an SQLite file that ends in .db, .sqlite or .sqlite3.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (
    migrate,
    sql,
    worker,
    enqueue,
    jobs,
    show,
    queues,
    cancel,
    retry,
    pause,
    resume,
    sweep,
    verify_command,
):
    commands.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; None: the process's own arguments."""
    return run(commands, arguments, "tenure")


def run(command: click.Command, arguments: Sequence[str] | None, name: str) -> int:
    """The exit code of a command, whose complaint is one line; `name` is what it is called."""
    try:
        code = command.main(arguments, prog_name=name, standalone_mode=False)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else name
        said = error.format_message()
        if isinstance(error, click.NoSuchOption) and where == name:
            said = f"{error.option_name} goes after the command, or is no option"
        return _refused(f"{said} (see: {where} --help)", error.exit_code)
    except click.ClickException as error:
        return _refused(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except TenureError as error:
        return _refused(str(error), 1)
    except psycopg.Error as error:
        return _refused(f"the database refuses: {error}", 1)
    except Exception as error:
        if os.environ.get("TENURE_TRACEBACK"):
            raise
        return _refused(f"{type(error).__name__}: {error} (set TENURE_TRACEBACK=1 to see where)", 1)
    return code if isinstance(code, int) else 0


def _refused(message: str, code: int) -> int:
    click.echo(f"tenure: {one_line(message)}", err=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
