"""What is not sent while the server's notification queue is more than half full."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tenure import embedded
from tenure.migrate import upgrade
from tests.postgres.ear import Ear
from tests.postgres.races import Connection, call, connected, enqueued, leased, one, owner
from tests.tools import servers

SMALLEST = 64  # pages of 8 kB
A_PAGE = "x" * 7_900

Session = Callable[[], Connection]


@pytest.fixture
def crowded(session: Session) -> Iterator[Session]:
    """Opens sessions on a server with a small queue and the functions of the test's database."""
    given = session()
    if given.info.server_version < 170_000:
        pytest.skip("the size of the notification queue is a setting from PostgreSQL 17 on")
    with ExitStack() as stack:
        settings = {**embedded.FAST, "max_notify_queue_pages": str(SMALLEST)}
        server = stack.enter_context(servers.temporary(settings))
        upgrade(server.url())

        def new() -> Connection:
            return stack.enter_context(connected(server.url()))

        copy = new()
        copy.execute("set search_path = tenure, pg_temp")
        for (definition,) in given.execute(
            """
            select pg_get_functiondef(p.oid) from pg_proc as p
             where p.pronamespace = 'tenure'::regnamespace and p.proname <> 'clock'
            """
        ):
            copy.execute(definition)
        yield new


def enqueue(worker: Connection, sleeper: Connection) -> str:
    call(sleeper, "sleep_begin", ["q"])
    enqueued(worker)
    (key,) = one(worker, "queue_key", "q")
    return f"q{key}"


def complete(worker: Connection, waiter: Connection) -> str:
    lease = leased(worker)
    call(waiter, "wait_begin", [lease.job_id])
    call(worker, "complete", *owner(lease))
    return f"d{lease.job_id}"


def cancel(worker: Connection, _: Connection) -> str:
    lease = leased(worker)
    call(worker, "cancel", lease.job_id)
    return f"c{lease.job_id}"


def half_full(connection: Connection) -> bool:
    row = connection.execute("select pg_notification_queue_usage() > 0.5").fetchone()
    return row == (True,)


@pytest.mark.parametrize("say", [enqueue, complete, cancel])
def test_nothing_is_said_from_the_moment_the_notification_queue_is_half_full_by(
    crowded: Session, say: Callable[[Connection, Connection], str]
) -> None:
    worker, sleeper = crowded(), crowded()
    ear = Ear(crowded(), crowded())
    expected = say(worker, sleeper)
    assert ear.heard() == [expected]

    # A listener that stays in a transaction reads nothing, so that the queue keeps it all.
    stuck = crowded()
    stuck.execute("listen elsewhere")
    stuck.execute("begin")
    stuck.execute("select 1")
    for _ in range(SMALLEST):
        if half_full(worker):
            break
        worker.execute("select pg_notify('elsewhere', %s)", [A_PAGE])
    assert half_full(worker)

    say(worker, sleeper)
    assert ear.heard() == []
