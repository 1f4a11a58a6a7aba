"""Runs SQL as each migration first ran it.

The files in sql/ say what tenure is now and change freely. A migration never reads them: it
loads the copies that `make freeze` laid in a folder named after the revision, so replaying it
years later does what it did the first time.
"""

from __future__ import annotations

import re

from alembic import op

from ._resources import migrations_root
from .install import included


def load(revision: str, *names: str) -> None:
    """Run files frozen at a revision, such as 'functions/claim.sql', in the order given."""
    for name in names:
        run(_read(revision, name))


def order(revision: str) -> list[str]:
    """The files that a revision froze whole, in the order of its own install.sql."""
    return included(_read(revision, "install.sql"))


def created(revision: str, what: str) -> list[str]:
    """The names after each `create table` or `create type` of a frozen schema.sql."""
    schema = _read(revision, "schema.sql")
    return re.findall(rf"^create {what} (\w+)", schema, flags=re.MULTILINE)


def run(sql: str) -> None:
    """Run statements as they stand: no colon or percent sign in them is a parameter."""
    context = op.get_context()
    if context.as_sql:
        context.impl.static_output(sql)
    else:
        op.get_bind().exec_driver_sql(sql, execution_options={"no_parameters": True})


def _read(revision: str, name: str) -> str:
    path = migrations_root().joinpath("frozen").joinpath(revision).joinpath(name)
    return path.read_text(encoding="utf-8")
