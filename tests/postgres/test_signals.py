"""What a runner asks of PostgreSQL besides the control plane."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tenure.errors import InvalidArgument
from tenure.postgres import PostgresControlPlane
from tenure.postgres_signals import PostgresSignals
from tenure.postgres_store import client_version

Connection = psycopg.Connection[Any]


@pytest.fixture
def connection(dsn: str) -> Iterator[Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def other(dsn: str) -> Iterator[Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def heard(connection: Connection) -> list[str]:
    """What the server has sent by the time it answers one more query."""
    connection.execute("select 1")
    return [n.payload for n in connection.notifies(timeout=0)]


def test_a_sleeper_hears_of_its_queues_and_of_cancellations(
    connection: Connection, other: Connection
) -> None:
    signals, plane = PostgresSignals(connection), PostgresControlPlane(other)
    assert signals.listen()
    plane.enqueue("mail", "send")
    assert heard(connection) == []  # nobody slept

    horizon = signals.sleep_begin(["mail"])
    assert horizon is not None
    assert signals.sleep_settled(horizon)
    plane.enqueue("mail", "send")
    assert heard(connection) == [f"q{signals.queue_key('mail')}"]
    plane.enqueue("mail", "send", notify=False)
    assert heard(connection) == []
    PostgresSignals(other).wake(["mail"])
    assert heard(connection) == [f"q{signals.queue_key('mail')}"]
    signals.sleep_end()
    plane.enqueue("mail", "send")
    assert heard(connection) == []

    [lease] = plane.claim(["mail"], "ada")
    plane.cancel(lease.job_id)
    assert heard(connection) == [f"c{lease.job_id}"]


def test_the_next_due_time_is_told_as_a_duration(connection: Connection, other: Connection) -> None:
    signals, plane = PostgresSignals(connection), PostgresControlPlane(other)
    assert signals.next_due(["mail"]) is None
    plane.enqueue("mail", "send", delay=timedelta(hours=1))
    due_in = signals.next_due(["mail"])
    assert due_in is not None
    assert timedelta(minutes=59) < due_in <= timedelta(hours=1)


def test_a_worker_is_seen_and_the_schema_kept(connection: Connection) -> None:
    signals = PostgresSignals(connection)
    signals.worker_seen("ada", ["mail"], {"host": "é"})
    [[queues, info]] = connection.execute("select queues, info from tenure.worker").fetchall()
    assert (queues, info) == (["mail"], {"host": "é"})
    assert all(isinstance(line, str) for line in signals.maintain())
    assert signals.schema_version() == client_version()


def test_what_must_not_happen_in_a_transaction_is_refused_there(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        signals = PostgresSignals(connection)
        for call in (signals.listen, signals.maintain, lambda: signals.sleep_begin(["mail"])):
            with pytest.raises(InvalidArgument, match="needs a connection in autocommit mode"):
                call()
