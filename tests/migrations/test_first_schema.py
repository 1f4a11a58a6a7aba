"""Jobs that were in flight under the first schema end as they should under the present one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest
from psycopg import sql

from migrations import freeze
from tenure.migrate import upgrade
from tests.conftest import Psql
from tests.migrations.first_schema import make
from tests.migrations.first_schema.make import drop_days
from tests.migrations.first_schema.restored import Aged, restored
from tests.migrations.schemas import rows_of, schema_of
from tests.postgres.races import Connection, connected
from tests.tools import databases

FIRST = freeze.revisions()[0]


def test_the_fixture_is_what_the_first_revision_makes(
    first: str, empty_database: Callable[[str], str], psql: Psql
) -> None:
    """Until the first release both are renewed together, by make freeze; then neither is."""
    made, again = empty_database("made"), empty_database("again")
    upgrade(made, revision=FIRST)
    drop_days_of(made)
    # A restore nests the parts of a constraint in another way.
    psql(again, stdin=databases.client("pg_dump", "--schema-only", "-d", made))

    with restored(first) as name:
        kept = databases.url(name)
        drop_days_of(kept)
        assert schema_of(kept) == schema_of(again), "make first-schema"
        assert rows_of(kept, "alembic_version") == [FIRST]


def test_the_fixture_is_not_made_anew_once_another_revision_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(freeze, "revisions", lambda: ["0001", "0002"])

    with pytest.raises(SystemExit, match="stays as 0001 was released: 0002 came after it"):
        make.main()


def drop_days_of(dsn: str) -> None:
    with connected(dsn) as connection:
        drop_days(connection)


def test_waiting_jobs_are_claimed_in_their_turn_with_all_that_they_carry(aged: Aged) -> None:
    """O41."""
    aged.pass_by(timedelta(minutes=1))
    leases = aged.plane.claim(["mail"], "carol", max_jobs=100)
    by_kind = {lease.kind: lease for lease in leases}

    assert leases[0].kind == "queued"
    assert leases[0].meta == {"trace": 1}
    assert leases[0].payload == {"left": "queued"}
    assert by_kind.keys() == {
        "queued", "retried by an operator", "timed out", "retrying", "released"
    }  # fmt: skip
    assert by_kind["retrying"].attempt == 2
    assert by_kind["retrying"].last_error == "Broken: no address"
    for kind, lease in by_kind.items():
        assert lease.token == aged.one(kind).token + 1
    assert aged.plane.claim(["paused"], "carol") == []
    aged.pass_by(timedelta(hours=1))
    assert [lease.kind for lease in aged.plane.claim(["mail"], "carol")] == ["delayed"]


def test_operators_reach_all_of_it(aged: Aged) -> None:
    """O41."""
    plane = aged.plane
    assert plane.cancel(aged.one("delayed").job_id).status == "cancelled"
    answer = plane.cancel(aged.one("running").job_id)
    assert (answer.verdict, answer.status) == ("ok", "running")
    for kind in ("failed", "cancelled"):
        for job in aged.left[kind]:
            assert plane.retry(job.job_id).status == "queued"
    assert not plane.enqueue("mail", "again", dedup_key="waits").created
    assert not plane.enqueue("mail", "again", dedup_key="running").created
    assert plane.enqueue("mail", "again", dedup_key="done").created
    assert plane.resume("paused").verdict == "ok"
    assert [lease.kind for lease in plane.claim(["paused"], "carol")] == ["paused"]
    assert {record.queue for record in aged.records.queues()} >= {"mail", "paused", "solo"}


def test_every_job_ends(aged: Aged) -> None:
    """O41: whatever its owner did then, none is lost, and new ids are beyond the old ones."""
    ids = {job.job_id for jobs in aged.left.values() for job in jobs}
    queues = [record.queue for record in aged.records.queues()]
    aged.plane.resume("paused")
    ended_before = {job.job_id: job.token for job in aged.left["completed"]}

    while aged.connection.execute("select from tenure.job limit 1").fetchone() is not None:
        aged.pass_by(timedelta(hours=2))
        aged.plane.sweep("carol")
        for lease in aged.plane.claim(queues, "carol", max_jobs=100):
            verdict = aged.plane.complete(lease.job_id, lease.worker_id, lease.token).verdict
            assert verdict == "ok"

    records = {record.job_id: record for record in aged.records.jobs(limit=1000)}
    assert records.keys() == ids
    assert {str(record.status) for record in records.values()} == {
        "completed", "failed", "cancelled"
    }  # fmt: skip
    assert {job_id: records[job_id].token for job_id in ended_before} == ended_before
    assert aged.plane.enqueue("mail", "new").job_id > max(ids)


def test_an_upgrade_keeps_what_roles_may_do(first: str) -> None:
    """O41: a function that is dropped and made anew takes its grants along."""
    with restored(first) as name:
        dsn = databases.url(name)
        role = sql.Identifier(f"{name} role")
        with psycopg.connect(dsn, autocommit=True) as owner:
            try:
                owner.execute(sql.SQL("create role {}").format(role))
            except psycopg.errors.InsufficientPrivilege:
                pytest.skip("the tests' own role may not create another")
            try:
                for word in ("produce", "work", "operate", "observe"):
                    owner.execute("select tenure.grant_role(%s, %s)", (f"{name} role", word))
                before = allowed(owner, f"{name} role")
                upgrade(dsn)
                assert allowed(owner, f"{name} role") >= before
                assert before
            finally:
                owner.execute(sql.SQL("drop owned by {}").format(role))
                owner.execute(sql.SQL("drop role {}").format(role))


def allowed(connection: Connection, role: str) -> set[str]:
    """The names of the functions and views that were opened to a role, not to everybody."""
    rows = connection.execute(
        """
        select p.proname
          from pg_proc as p
         where p.pronamespace = 'tenure'::regnamespace
           and exists (select from aclexplode(p.proacl) as a
                        where a.grantee = %(role)s::regrole)
        union all
        select c.relname
          from pg_class as c
         where c.relnamespace = 'tenure'::regnamespace
           and c.relkind = 'v'
           and exists (select from aclexplode(c.relacl) as a
                        where a.grantee = %(role)s::regrole)
        """,
        {"role": f'"{role}"'},
    ).fetchall()
    return {name for (name,) in rows}
