"""O42: a schema comes up to date under working runners, or says in one line who is in the way."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from migrations import freeze
from tenure import migrate, migrate_session
from tenure.errors import Busy
from tenure.migrate import downgrade, upgrade
from tests.migrations.schemas import rows_of
from tests.postgres.races import (
    LONGEST_WAIT,
    Connection,
    call,
    connected,
    enqueued,
    pid,
    started,
    wait_until,
)

HEAD = freeze.revisions()[-1]
NEXT = "9999"

REVISION = f'''
from alembic import op

revision, down_revision = "{NEXT}", "{HEAD}"


def upgrade():
    op.execute("create table waited as select current_setting('lock_timeout') as at_most")
    op.execute("alter table job add column note text")


def downgrade():
    op.execute("alter table job drop column note")
    op.execute("drop table waited")
'''


@pytest.fixture
def next_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One revision more, that changes the table of live jobs."""
    root = tmp_path / "migrations"
    shutil.copytree(freeze.MIGRATIONS, root)
    (root / "versions" / f"{NEXT}_note.py").write_text(REVISION)
    monkeypatch.setattr(migrate, "migrations_root", lambda: root)


@pytest.fixture
def session(fresh_dsn: str) -> Iterator[Callable[[], Connection]]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(connected(fresh_dsn))


@pytest.fixture
def reader(session: Callable[[], Connection]) -> Connection:
    """Has read the live jobs in a transaction that goes on."""
    reader = session()
    reader.execute("begin; select from tenure.job")
    return reader


def impatient(dsn: str, milliseconds: int) -> str:
    """The DSN of somebody who chose a lock_timeout of his own."""
    return f"{dsn}{'&' if '?' in dsn else '?'}options=-clock_timeout%3D{milliseconds}"


def waiting_for_the_jobs(watcher: Connection) -> list[int]:
    """The processes that want the whole table of live jobs for themselves and wait for it."""
    rows = watcher.execute(
        """
        select l.pid
          from pg_locks as l
         where l.relation = 'tenure.job'::regclass
           and l.mode = 'AccessExclusiveLock'
           and not l.granted
        """
    ).fetchall()
    return [waiting for (waiting,) in rows]


@pytest.mark.usefixtures("next_revision")
def test_claims_behind_an_upgrade_wait_until_it_gives_up_and_no_longer(
    fresh_dsn: str, session: Callable[[], Connection], reader: Connection
) -> None:
    watcher, claimer = session(), session()
    job_id = enqueued(claimer)

    upgrading = started(lambda: upgrade(impatient(fresh_dsn, 1000)))
    wait_until("the upgrade waits", lambda: len(waiting_for_the_jobs(watcher)) == 1)
    [upgrader] = waiting_for_the_jobs(watcher)
    claiming = started(lambda: call(claimer, "claim", ["q"], "ada"))
    wait_until(
        "the claim waits behind it",
        lambda: (
            watcher.execute(
                "select %s = any (pg_blocking_pids(%s))", [upgrader, pid(claimer)]
            ).fetchone()
            == (True,)
        ),
    )

    # All of it while the reader reads on.
    with pytest.raises(Busy):
        upgrading.result(LONGEST_WAIT)
    [lease] = claiming.result(LONGEST_WAIT)
    assert lease.job_id == job_id
    assert rows_of(fresh_dsn, "alembic_version") == [HEAD]
    assert watcher.execute("select to_regclass('tenure.waited')").fetchone() == (None,)

    reader.execute("commit")
    assert upgrade(fresh_dsn) == NEXT
    assert len(call(claimer, "renew", "ada", [job_id], [lease.token])) == 1


@pytest.mark.usefixtures("next_revision")
def test_the_error_names_who_is_in_the_way_and_what_to_do(
    fresh_dsn: str, reader: Connection
) -> None:
    with pytest.raises(Busy) as busy:
        upgrade(impatient(fresh_dsn, 50))

    holder = pid(reader)
    said = rf"^process {holder} \(.+\) holds a table of schema tenure, in a transaction of \d+ s "
    assert re.match(said, str(busy.value))
    assert f"or end it with select pg_terminate_backend({holder})" in str(busy.value)
    assert "\n" not in str(busy.value)


@pytest.mark.usefixtures("next_revision")
@pytest.mark.parametrize(("chosen", "at_most"), [(None, "2s"), (5000, "5s")])
def test_an_upgrade_waits_two_seconds_unless_its_caller_chose(
    fresh_dsn: str, chosen: int | None, at_most: str
) -> None:
    upgrade(impatient(fresh_dsn, chosen) if chosen else fresh_dsn)

    assert rows_of(fresh_dsn, "waited") == [at_most]


@pytest.mark.usefixtures("next_revision")
@pytest.mark.parametrize("revision", [HEAD, "base"])
def test_a_way_down_that_is_barred_changes_nothing_and_can_be_gone_again(
    fresh_dsn: str, session: Callable[[], Connection], revision: str
) -> None:
    upgrade(fresh_dsn)
    reader = session()
    reader.execute("begin; select from tenure.job")

    with pytest.raises(Busy, match=f"process {pid(reader)} "):
        downgrade(impatient(fresh_dsn, 50), revision=revision)
    assert rows_of(fresh_dsn, "alembic_version") == [NEXT]

    reader.execute("rollback")
    assert downgrade(fresh_dsn, revision=revision) == (None if revision == "base" else revision)


def test_an_upgrade_with_nothing_to_do_waits_for_no_table(
    fresh_dsn: str, session: Callable[[], Connection]
) -> None:
    holder = session()
    holder.execute("begin; lock table tenure.job, tenure.job_history in access exclusive mode")

    assert upgrade(impatient(fresh_dsn, 50)) == HEAD

    holder.execute("rollback")


def test_an_upgrade_whose_blocker_has_gone_says_so_all_the_same(
    fresh_dsn: str,
) -> None:
    with psycopg.connect(fresh_dsn) as connection:
        busy = migrate_session._busy(connection, "tenure")

    assert str(busy) == (
        "somebody held a table of schema tenure for too long (nothing was changed: run it again)"
    )
