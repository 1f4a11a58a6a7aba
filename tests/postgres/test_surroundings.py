"""Nothing around an install changes what it does: paths, names, a neighbour, a restore."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import psycopg
import pytest
from psycopg import sql

from tenure.migrate import upgrade
from tests.conftest import Psql
from tests.postgres.every_function import Caller, call_every_function
from tests.postgres.races import Connection, connected, pid
from tests.tools import databases

Session = Callable[[], Connection]
MakeDatabase = Callable[[str], str]

SCHEMAS = ["My-Queue", "select", "a.b", 'quo"te', "quo'te", "é" * 31 + "x", "back\\slash"]
QUEUES = [
    "My-Queue",
    "quo'te",
    'quo"te',
    "50%s:name",
    "a,b{}",
    "🦆",
    "back\\slash",
    "select",
    "é" * 64,
]

RELATIONS = "select c.relname from pg_class as c where c.relnamespace = 'tenure'::regnamespace"


def everything(connection: Connection, schema: str = "tenure", queue: str = "q") -> list[int]:
    """Call every function in one session; check that the jobs are where they belong."""
    caller = Caller(connection, schema)
    ids = call_every_function(caller, caller, caller, queue)
    found = connection.execute(
        sql.SQL("select job_id from {}.jobs where queue = %s order by 1").format(
            sql.Identifier(schema)
        ),
        [queue],
    ).fetchall()
    assert [job_id for (job_id,) in found] == sorted(ids)
    return ids


def shadow(connection: Connection, schema: str) -> list[str]:
    """Make a relation of each of tenure's names in another schema."""
    names = connection.execute(
        RELATIONS + " and c.relkind in ('r', 'p', 'v', 'S') and not c.relispartition"
    ).fetchall()
    for (name,) in names:
        # One that takes any row that is meant for tenure's own.
        connection.execute(
            sql.SQL("create table {} as table tenure.{}").format(
                sql.Identifier(schema, name), sql.Identifier(name)
            )
        )
    return [name for (name,) in names]


@pytest.mark.parametrize(
    "path", ["''", "hostile", "hostile, pg_catalog, tenure", "pg_temp, hostile, pg_catalog"]
)
def test_every_function_works_under_any_search_path_and_touches_nothing_else(
    session: Session, path: str
) -> None:
    """O39."""
    owner, caller = session(), session()
    owner.execute("create schema hostile")
    names = shadow(owner, "hostile")
    assert {"job", "queue", "install", "jobs", "job_id_seq"} <= set(names)
    shadow(caller, "pg_temp")
    functions = owner.execute(
        """
        select p.proname, pg_get_function_identity_arguments(p.oid)
          from pg_proc as p
         where p.pronamespace = 'tenure'::regnamespace
        union all
        values ('now', ''), ('clock_timestamp', ''), ('random', ''), ('hashtext', 'text'),
               ('pg_current_xact_id', ''), ('pg_notify', 'text, text'), ('format', 'text, text'),
               ('array_position', 'bigint[], bigint')
        """
    ).fetchall()
    for name, arguments in functions:
        owner.execute(
            sql.SQL(
                """
                create function hostile.{}({}) returns timestamptz language plpgsql as $$
                begin raise exception 'another function was called'; end $$
                """
            ).format(sql.Identifier(name), sql.SQL(arguments))
        )
    before = [_count(caller, schema, name) for schema in ("hostile", "pg_temp") for name in names]
    caller.execute(f"set search_path = {path}".encode())

    everything(caller)

    after = [_count(caller, schema, name) for schema in ("hostile", "pg_temp") for name in names]
    assert after == before


def _count(connection: Connection, schema: str, name: str) -> object:
    """How many rows, and in how many versions: an update counts too."""
    return connection.execute(
        sql.SQL("select count(*), max(t.xmin::text::bigint) from {} as t").format(
            sql.Identifier(schema, name)
        )
    ).fetchone()


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_function_works_in_a_schema_of_any_name(
    empty_database: MakeDatabase, schema: str
) -> None:
    """O38."""
    dsn = empty_database("named")
    upgrade(dsn, schema=schema)
    with connected(dsn) as connection:
        everything(connection, schema)


def test_every_function_works_on_a_queue_of_any_name(session: Session) -> None:
    """O38."""
    connection = session()
    made = [job_id for queue in QUEUES for job_id in everything(connection, queue=queue)]
    assert len(set(made)) == 10 * len(QUEUES)


def test_queues_whose_names_look_alike_share_nothing(session: Session) -> None:
    caller = Caller(session())
    names = ["q", "Q", "q'", "é", "e\u0301", "%71"]
    ids = {name: caller.one("enqueue", name, "work").job_id for name in names}
    for name in names:
        [lease] = caller.rows("claim", [name], "ada", 10)
        assert lease.job_id == ids[name]


def test_two_installs_do_not_wake_each_other(empty_database: MakeDatabase) -> None:
    """O38: the schemas differ in case alone."""
    dsn = empty_database("two")
    with ExitStack() as stack:
        callers = {}
        for schema in ("Q", "q"):
            upgrade(dsn, schema=schema)
            callers[schema] = Caller(stack.enter_context(connected(dsn)), schema)
        sleepers = {s: Caller(stack.enter_context(connected(dsn)), s) for s in callers}
        for sleeper in sleepers.values():
            for other in sleepers.values():
                channel = sql.Identifier(other.value("channel"))
                sleeper.connection.execute(sql.SQL("listen {}").format(channel))
        sleepers["Q"].value("sleep_begin", ["mail"])

        callers["q"].one("enqueue", "mail", "work")
        callers["q"].rows("wake", ["mail"])
        assert _heard(sleepers["Q"]) == []

        sleepers["q"].value("sleep_begin", ["mail"])
        callers["q"].one("enqueue", "mail", "work")
        expected = (sleepers["q"].value("channel"), pid(callers["q"].connection))
        assert _heard(sleepers["Q"]) == [expected]
        sleepers["q"].value("sleep_end")

        callers["q"].one("enqueue", "mail", "work")
        assert _heard(sleepers["q"])[1:] == []
        assert callers["Q"].rows("claim", ["mail"], "ada") == []


def _heard(sleeper: Caller) -> list[tuple[str, int]]:
    """What came by the time the server answers one more query, on any install's channel."""
    sleeper.connection.execute("select 1")
    return [(n.channel, n.pid) for n in sleeper.connection.notifies(timeout=0)]


@pytest.mark.parametrize("schema", ["tenure", "My-Queue"])
def test_a_restored_dump_goes_on_where_it_was(
    empty_database: MakeDatabase, psql: Psql, schema: str
) -> None:
    """O39: a restore empties the search_path."""
    source, target = empty_database("dumped"), empty_database("restored")
    upgrade(source, schema=schema)
    with connected(source) as connection:
        caller = Caller(connection, schema)
        first = caller.one("enqueue", "q", "work", dedup_key="k").job_id
        [held] = caller.rows("claim_job", first, "ada")
        done = caller.one("enqueue", "q", "work").job_id
        [lease] = caller.rows("claim_job", done, "ada")
        assert caller.verb("complete", lease) == ("ok", "completed")

    psql(target, stdin=databases.client("pg_dump", "--dbname", source))

    with connected(target) as connection:
        caller = Caller(connection, schema)
        assert not caller.one("enqueue", "q", "work", dedup_key="k").created
        assert caller.verb("complete", held) == ("ok", "completed")
        assert caller.verb("complete", lease) == ("already", "completed")
        assert min(everything(connection, schema, "other")) > done


def test_a_restored_dump_is_closed_to_the_public(
    empty_database: MakeDatabase, psql: Psql, fresh_dsn: str
) -> None:
    target = empty_database("restored")

    psql(target, stdin=databases.client("pg_dump", "--dbname", fresh_dsn))

    with psycopg.connect(target) as connection:
        open_ones = connection.execute(
            """
            select p.oid::regprocedure::text
              from pg_proc as p
             where p.pronamespace = 'tenure'::regnamespace
               and has_function_privilege('public', p.oid, 'execute')
            """
        ).fetchall()
    assert open_ones == []
