"""${message}.

What its users gain, then what is odd about it.
"""

from alembic import op

from tenure.frozen import load

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
