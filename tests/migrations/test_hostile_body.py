"""O43: what looks like a parameter inside a function's body reaches the server as it stands."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from migrations import freeze
from tenure import frozen, migrate
from tenure.migrate import downgrade, offline_sql, upgrade
from tests.conftest import Psql
from tests.migrations.schemas import bodies_of, schema_of

MakeDatabase = Callable[[str], str]

HEAD = freeze.revisions()[-1]
NEXT = "9999"

BODY = r"""
declare
  v text := 'x :y';
begin
  -- 50%, :name, {braces} and %(this)s are nobody's parameters
  v := format('%I.%L', v, 1::text);
  if v ~ '^\d+\\:\w%$' then
    raise notice '% of %% at %', v, '{}';
  end if;
  return v;
end;
"""

CREATE = f"""create or replace function channel()
  returns text
  language plpgsql
  set search_path from current
as $${BODY}$$;
"""

REVISION = f'''
from tenure import frozen

revision, down_revision = "{NEXT}", "{HEAD}"


def upgrade():
    frozen.load("{NEXT}", "functions/channel.sql")


def downgrade():
    frozen.load("{HEAD}", "functions/channel.sql")
'''


@pytest.fixture(autouse=True)
def next_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One revision more, with a body of its own for a function."""
    root = tmp_path / "migrations"
    shutil.copytree(freeze.MIGRATIONS, root)
    (root / "versions" / f"{NEXT}_body.py").write_text(REVISION)
    (root / "frozen" / NEXT / "functions").mkdir(parents=True)
    (root / "frozen" / NEXT / "functions" / "channel.sql").write_text(CREATE)
    for module in (migrate, frozen):
        monkeypatch.setattr(module, "migrations_root", lambda: root)


def test_a_body_is_the_same_online_and_through_psql(
    empty_database: MakeDatabase, psql: Psql
) -> None:
    online, offline = empty_database("online"), empty_database("offline")

    upgrade(online)
    psql(offline, stdin=offline_sql())

    assert bodies_of(online)["channel()"] == BODY
    assert bodies_of(offline)["channel()"] == BODY
    with psycopg.connect(online) as connection:
        assert connection.execute("select tenure.channel()").fetchone() == ("\"x :y\".'1'",)


def test_a_step_down_brings_the_earlier_body_back(empty_database: MakeDatabase) -> None:
    dsn = empty_database("down")
    upgrade(dsn, revision=HEAD)
    before = schema_of(dsn)

    upgrade(dsn)
    assert schema_of(dsn) != before
    downgrade(dsn, revision=HEAD)

    assert schema_of(dsn) == before
