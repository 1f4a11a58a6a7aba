"""Jobs with leases: everything of the first release.

The files were frozen whole, and with them the install.sql that names them, whose order is
followed here. Down drops all of it and keeps the schema, which may hold other things.
"""

from pathlib import PurePosixPath

from alembic import op

from tenure import frozen

revision = "0001"
down_revision = None

# What install.sql loads around a revision's own files: Alembic keeps the version table.
NOT_OURS = {"prelude.sql", "version.sql"}


def upgrade() -> None:
    frozen.load(revision, *(name for name in frozen.order(revision) if name not in NOT_OURS))
    frozen.run("do $$ begin perform maintain(); end $$;")


def downgrade() -> None:
    op.execute(f"drop view {', '.join(_named('views'))}")
    op.execute(f"drop function {', '.join(_named('functions'))}")
    op.execute(f"drop table {', '.join(frozen.created(revision, 'table'))}")
    op.execute(f"drop type {', '.join(frozen.created(revision, 'type'))}")


def _named(folder: str) -> list[str]:
    files = map(PurePosixPath, frozen.order(revision))
    return [file.stem for file in files if file.parent.name == folder]
