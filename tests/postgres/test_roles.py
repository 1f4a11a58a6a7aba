"""What each role may do: exactly what it was given, and nothing to a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import sql

from tenure.migrate import upgrade
from tests.postgres.every_function import Caller, call_every_function
from tests.postgres.races import Connection, call
from tests.tools import databases

Session = Callable[[], Connection]

ENQUEUE = {
    "enqueue", "enqueue_many", "wake", "try_wake", "cancel_requested", "results", "channel",
    "wait_begin", "sleep_settled", "sleep_end", "schema_version",
}  # fmt: skip
OPERATE = {
    "cancel", "retry", "pause", "resume", "sweep", "lapsed", "maintain", "cancel_requested",
    "schema_version",
}  # fmt: skip
WORK = {
    "next_eligible_job_id", "claim_job", "claim", "renew", "cancel_requested", "lapsed", "reclaim",
    "update_owned", "complete", "fail", "release", "acknowledge_cancel", "seal", "settle", "guard",
    "held", "sweep", "worker_seen", "maintain", "wake", "channel", "queue_key", "poll_floor",
    "sleep_begin", "sleep_settled", "sleep_end", "next_due", "results",
    "schema_version",
}  # fmt: skip

MATRIX = {
    "produce": ENQUEUE,
    "work": WORK,
    "operate": OPERATE,
    "observe": {"schema_version", "clock"},
    "nobody": set[str](),
}

VIEWS = {"jobs", "attempts", "queues", "workers", "failed_jobs", "lapsed_jobs"}

ROLES = pytest.mark.parametrize("word", MATRIX)


@pytest.fixture
def roles(session: Session) -> Iterator[dict[str, str]]:
    """The names of roles, by what grant_role gave them; nobody may only use the schema."""
    owner = session()
    names = {word: f'{databases.new_name("role")} "{word.upper()}"' for word in MATRIX}
    for word, name in names.items():
        owner.execute(sql.SQL("create role {}").format(sql.Identifier(name)))
        if word == "nobody":
            usage = sql.SQL("grant usage on schema tenure to {}")
            owner.execute(usage.format(sql.Identifier(name)))
        else:
            call(owner, "grant_role", name, word)
    yield names
    for name in names.values():
        for statement in ("drop owned by {}", "drop role {}"):
            owner.execute(sql.SQL(statement).format(sql.Identifier(name)))


@pytest.fixture
def acting(session: Session, roles: dict[str, str]) -> Callable[[str], Connection]:
    """Opens sessions that are a role's."""

    def become(word: str) -> Connection:
        connection = session()
        connection.execute(
            sql.SQL("set session authorization {}").format(sql.Identifier(roles[word]))
        )
        return connection

    return become


Acting = Callable[[str], Connection]


def test_the_roles_together_can_do_everything_they_were_given(acting: Acting) -> None:
    """O40."""
    produce, work, operate = (Caller(acting(word)) for word in ("produce", "work", "operate"))

    call_every_function(produce, work, operate)
    # A worker may wake others after it released a job with notify => false.
    work.rows("wake", ["q"])

    assert produce.called == ENQUEUE
    assert work.called == WORK
    assert operate.called == OPERATE


def test_an_observer_reads_every_view(session: Session, acting: Acting) -> None:
    caller = Caller(session())
    call_every_function(caller, caller, caller)
    observer = acting("observe")

    for view in VIEWS:
        rows = observer.execute(sql.SQL("select * from {}").format(_in_tenure(view))).fetchall()
        assert rows or view in {"failed_jobs", "lapsed_jobs"}


@ROLES
def test_a_role_is_refused_every_function_it_was_not_given(
    session: Session, acting: Acting, word: str
) -> None:
    """O40."""
    owner, connection = session(), acting(word)
    functions = owner.execute(
        """
        select p.proname as name, p.oid::regprocedure::text as signature,
               array(select format('null::%s', format_type(t.oid, null))
                       from unnest(p.proargtypes) as t(oid)) as nulls
          from pg_proc as p
         where p.pronamespace = 'tenure'::regnamespace
        """
    ).fetchall()
    refused = set()

    for name, _, nulls in functions:
        values = ", ".join(f"{null} as a{n}" for n, null in enumerate(nulls))
        names = ", ".join(f"a{n}" for n, _ in enumerate(nulls))
        try:
            # No constants: the planner knows what a strict function says to a null, unasked.
            connection.execute(
                f"select tenure.{name}({names}) from (select {values} offset 0) as n".encode()
            )
        except psycopg.errors.InsufficientPrivilege:
            refused.add(name)
        except psycopg.errors.InvalidParameterValue:
            pass  # it was called, and refused the nulls

    assert refused == {name for name, _, _ in functions} - MATRIX[word]


@ROLES
def test_a_role_has_no_right_on_any_table_or_sequence(
    session: Session, roles: dict[str, str], word: str
) -> None:
    rights = (
        session()
        .execute(
            """
        select c.relname, p.privilege
          from pg_class as c,
               unnest(array['select', 'insert', 'update', 'references']) as p(privilege)
         where c.relnamespace = 'tenure'::regnamespace
           and c.relkind in ('r', 'p', 'v')
           and has_any_column_privilege(%(role)s, c.oid, p.privilege)
        union all
        select c.relname, p.privilege
          from pg_class as c,
               unnest(array['delete', 'truncate', 'trigger']) as p(privilege)
         where c.relnamespace = 'tenure'::regnamespace
           and c.relkind in ('r', 'p', 'v')
           and has_table_privilege(%(role)s, c.oid, p.privilege)
        union all
        select c.relname, p.privilege
          from pg_class as c,
               unnest(array['usage', 'select', 'update']) as p(privilege)
         where c.relnamespace = 'tenure'::regnamespace
           and c.relkind = 'S'
           and has_sequence_privilege(%(role)s, c.oid, p.privilege)
        """,
            {"role": roles[word]},
        )
        .fetchall()
    )

    assert set(rights) == ({(view, "select") for view in VIEWS} if word == "observe" else set())


@ROLES
def test_a_role_changes_nothing_directly(acting: Acting, word: str) -> None:
    """O40."""
    connection = acting(word)
    for statement in FORBIDDEN:
        connection.execute("begin")
        try:
            connection.execute(statement.encode())
        except psycopg.errors.InsufficientPrivilege:
            connection.execute("rollback")
        else:
            pytest.fail(f"allowed: {statement}")


FORBIDDEN = [
    "insert into tenure.job (queue) values ('q')",
    "update tenure.job set token = 0",
    "delete from tenure.job_history",
    "delete from tenure.job_history_default",
    "truncate tenure.attempt",
    "select from tenure.job for update",
    "lock table tenure.job in row exclusive mode",
    "copy tenure.job to stdout",
    "select nextval('tenure.job_id_seq')",
    "alter table tenure.queue add column mine int",
    "alter function tenure.clock() set timezone = 'UTC'",
    "drop function tenure.clock()",
    "drop view tenure.jobs",
    "create table tenure.mine (id int)",
    "create function tenure.mine() returns int language sql as 'select 1'",
    "create type tenure.mine as (id int)",
]


def test_granting_refuses_another_word_and_an_unknown_role(
    session: Session, roles: dict[str, str]
) -> None:
    owner = session()
    for word in ("everything", None):
        with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
            call(owner, "grant_role", roles["nobody"], word)
        assert refused.value.diag.message_hint
    for role in (f"{roles['nobody']}'s", "", "public", "none", "current_user", None):
        with pytest.raises(psycopg.errors.UndefinedObject) as unknown:
            call(owner, "grant_role", role, "work")
        assert unknown.value.diag.message_hint


def _in_tenure(name: str) -> sql.Identifier:
    return sql.Identifier("tenure", name)


def test_a_role_of_one_install_has_no_right_in_another(
    session: Session, dsn: str, roles: dict[str, str]
) -> None:
    upgrade(dsn, schema="another")
    owner = session()
    for word in MATRIX.keys() - {"nobody"}:
        call(owner, "grant_role", roles[word], word)

    opened = owner.execute(
        """
        select r.role, p.oid::regprocedure::text
          from unnest(%(roles)s::text[]) as r(role), pg_proc as p
         where p.pronamespace = 'another'::regnamespace
           and has_function_privilege(r.role, p.oid, 'execute')
        union all
        select r.role, c.relname
          from unnest(%(roles)s::text[]) as r(role), pg_class as c
         where c.relnamespace = 'another'::regnamespace
           and c.relkind in ('r', 'v')
           and has_table_privilege(r.role, c.oid, 'select')
        """,
        {"roles": list(roles.values())},
    ).fetchall()
    assert opened == []
