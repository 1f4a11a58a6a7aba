"""Jobs that were in flight under the first schema end as they should under the present one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta

import psycopg
import pytest
from psycopg import sql

from migrations import freeze
from tenure.migrate import upgrade
from tenure.postgres import PostgresControlPlane
from tenure.postgres_records import PostgresRecords
from tenure.values import Failure
from tests.conftest import Psql
from tests.migrations.first_schema.jobs import ADA
from tests.migrations.first_schema.make import drop_days
from tests.migrations.first_schema.restored import (
    WAYS,
    Left,
    left,
    restored,
    stand_still,
)
from tests.migrations.schemas import rows_of, schema_of
from tests.postgres.races import Connection, connected
from tests.tools import databases

FIRST = freeze.revisions()[0]
BROKEN = Failure(error_type="Broken")

LAPSED = {
    "lapsed": ("lost", "queued"),
    "lapsed on the last attempt": ("lost", "failed"),
    "sealed, lapsed": ("healed", "completed"),
    "cancel requested, lapsed": ("cancelled", "cancelled"),
    "buffered, lapsed": ("lost", "queued"),
}
"""What the sweep is to say of each, and what becomes of the job."""


class Aged:
    """A copy of the fixture at head: the jobs as they were left, and the present client."""

    def __init__(self, dsn: str, connection: Connection) -> None:
        self.dsn = dsn
        self.connection = connection
        self.plane = PostgresControlPlane(connection)
        self.records = PostgresRecords(connection)
        self.left = left(connection)

    def one(self, kind: str) -> Left:
        [job] = self.left[kind]
        return job

    def status(self, job: Left) -> str:
        record = self.records.job(job.job_id)
        assert record is not None
        return str(record.status)

    def pass_by(self, span: timedelta) -> None:
        self.connection.execute("update tenure.test_clock set at = at + %s", [span])


@pytest.fixture(scope="module")
def first() -> Iterator[str]:
    """The fixture as it is, never upgraded."""
    with restored() as name:
        yield name


@pytest.fixture(scope="module")
def at_head(first: str) -> Iterator[Callable[[str], str]]:
    """The name of a database in which the fixture came to head by one of the ways."""
    with ExitStack() as stack:
        made: dict[str, str] = {}

        def make(way: str) -> str:
            if way not in made:
                name = stack.enter_context(restored(first))
                dsn = databases.url(name)
                stand_still(dsn)
                WAYS[way](dsn)
                stand_still(dsn)
                made[way] = name
            return made[way]

        yield make


@pytest.fixture(params=WAYS)
def aged(request: pytest.FixtureRequest, at_head: Callable[[str], str]) -> Iterator[Aged]:
    with restored(at_head(request.param)) as name:
        dsn = databases.url(name)
        with connected(dsn) as connection:
            yield Aged(dsn, connection)


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


def drop_days_of(dsn: str) -> None:
    with connected(dsn) as connection:
        drop_days(connection)


def test_owners_go_on_with_the_tokens_they_have(aged: Aged) -> None:
    """O41."""
    plane = aged.plane

    running = aged.one("running")
    assert plane.complete(*running.owner, "sent").verdict == "ok"
    assert plane.complete(*running.owner, "sent").verdict == "already"
    settled = plane.fail(*aged.one("running, to fail").owner, BROKEN)
    assert (settled.verdict, settled.status) == ("ok", "queued")
    settled = plane.release(*aged.one("running, to release").owner, started=True)
    assert (settled.verdict, settled.status) == ("ok", "queued")
    settled = plane.fail(*aged.one("running on the last attempt").owner, BROKEN)
    assert (settled.verdict, settled.status) == ("ok", "failed")
    assert plane.complete(*aged.one("lapsed, taken over").owner).verdict == "ok"

    guarded = aged.one("running, to guard")
    with aged.connection.transaction():
        plane.guard(*guarded.owner)
        assert plane.complete(*guarded.owner).verdict == "ok"
    assert aged.status(guarded) == "completed"

    sealed = aged.one("sealed")
    assert plane.fail(*sealed.owner, BROKEN).verdict == "sealed"
    assert plane.complete(*sealed.owner).verdict == "ok"
    assert [found.result for found in aged.records.results([sealed.job_id])] == ["half done"]

    asked = aged.one("cancel requested")
    assert plane.complete(*asked.owner).verdict == "cancel_requested"
    assert plane.acknowledge_cancel(*asked.owner).status == "cancelled"


def test_leases_are_renewed_and_keep_what_they_had(aged: Aged) -> None:
    """O41."""
    timed, progressing = aged.one("running under a timeout"), aged.one("running, with progress")
    before = aged.records.job(timed.job_id)
    assert before is not None
    assert before.claimed_at is not None
    assert before.timeout is not None

    aged.pass_by(timedelta(minutes=10))
    renewals = aged.plane.renew(
        ADA,
        [(job.job_id, job.token) for job in (timed, progressing)],
        lease_for=timedelta(hours=2),
    )

    assert [renewal.outcome for renewal in renewals] == ["renewed", "renewed"]
    until = {renewal.job_id: renewal.lease_expires_at for renewal in renewals}
    assert until[timed.job_id] == before.claimed_at + before.timeout
    record = aged.records.job(progressing.job_id)
    assert record is not None
    assert record.progress == {"done": 0.5}
    assert aged.plane.update_owned(*progressing.owner, progress={"done": 1}).verdict == "ok"


def test_a_batch_is_given_back_without_a_charge(aged: Aged) -> None:
    """O41."""
    for job in aged.left["buffered"]:
        assert job.attempt == 1
        assert aged.plane.release(*job.owner, started=False).status == "queued"
        record = aged.records.job(job.job_id)
        assert record is not None
        assert record.attempt == 0


def test_former_owners_stay_refused_and_late_answers_are_known(aged: Aged) -> None:
    """O41."""
    for kind in ("lapsed, taken over", "lapsed, swept", "timed out"):
        job = aged.one(kind)
        assert aged.plane.complete(job.job_id, "bob", job.token - 1).verdict == "lost"
    for kind, verb in (("completed", aged.plane.complete), ("failed", None)):
        for job in aged.left[kind]:
            settled = verb(*job.owner) if verb else aged.plane.fail(*job.owner, BROKEN)
            assert settled.verdict == "already"


def test_a_lapsed_lease_that_nobody_took_over_is_its_owners(aged: Aged) -> None:
    """O41."""
    assert aged.plane.complete(*aged.one("lapsed").owner).verdict == "ok"
    assert aged.plane.complete(*aged.one("sealed, lapsed").owner).verdict == "ok"


def test_lapses_are_swept(aged: Aged) -> None:
    """O41."""
    expected = {
        job.job_id: (outcome, status)
        for kind, (outcome, status) in LAPSED.items()
        for job in aged.left[kind]
    }

    swept = aged.plane.sweep("carol")

    assert {row.job_id: (row.outcome, row.status) for row in swept} == expected
    for job in aged.left["buffered, lapsed"]:
        record = aged.records.job(job.job_id)
        assert record is not None
        assert record.solo
        assert record.attempt == 0
    again = aged.plane.complete(*aged.one("sealed, lapsed").owner)
    assert again.verdict == "already"


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
    """The names of the functions and views that a role may use."""
    rows = connection.execute(
        """
        select p.proname
          from pg_proc as p
         where p.pronamespace = 'tenure'::regnamespace
           and has_function_privilege(%(role)s, p.oid, 'execute')
        union all
        select c.relname
          from pg_class as c
         where c.relnamespace = 'tenure'::regnamespace
           and c.relkind = 'v'
           and has_table_privilege(%(role)s, c.oid, 'select')
        """,
        {"role": role},
    ).fetchall()
    return {name for (name,) in rows}
