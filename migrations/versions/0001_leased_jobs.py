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

TABLES = ("job", "job_history", "attempt", "queue", "worker", "install")
TYPES = (
    "lease",
    "lapsed_lease",
    "held_lease",
    "renewal",
    "job_verdict",
    "swept",
    "enqueued",
    "enqueued_many",
    "job_answer",
    "queue_answer",
    "due",
    "job_status",
)


def upgrade() -> None:
    frozen.load(revision, *(name for name in frozen.order(revision) if name not in NOT_OURS))
    frozen.run("do $$ begin perform maintain(); end $$;")


def downgrade() -> None:
    op.execute(f"drop view {', '.join(_named('views'))}")
    op.execute(f"drop table {', '.join(TABLES)}")
    op.execute(f"drop function {', '.join(_named('functions'))}")
    op.execute(f"drop type {', '.join(TYPES)}")


def _named(folder: str) -> list[str]:
    files = map(PurePosixPath, frozen.order(revision))
    return [file.stem for file in files if file.parent.name == folder]
