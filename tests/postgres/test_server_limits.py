"""The server keeps the client's limits, whoever calls its functions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tenure import limits
from tenure.codec import dumps
from tenure.errors import InvalidArgument
from tenure.postgres import PostgresControlPlane

Connection = psycopg.Connection[Any]


@pytest.fixture
def connection(dsn: str) -> Iterator[Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def enqueue(connection: Connection, **arguments: object) -> None:
    """Call enqueue as a client without limits of its own would."""
    given = {"p_queue": "default", "p_kind": "work", **arguments}
    names = ", ".join(f"{name} => %({name})s" for name in given)
    connection.execute(f"select tenure.enqueue({names})".encode(), given)


TEN_YEARS = 3653 * 86_400


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("p_queue", "é" * 64, "é" * 64 + "x"),
        ("p_queue", "a b", "a b "),
        ("p_queue", "a\u200bb", "a\u0085b"),
        ("p_queue", "\u200b", "\u3000x"),
        ("p_kind", "k" * 128, "k" * 129),
        ("p_kind", "%s", ""),
        ("p_dedup_key", "k" * 8192, "k" * 8193),
        ("p_dedup_key", " ", ""),
        ("p_priority", 9, 10),
        ("p_priority", 0, -1),
        ("p_max_attempts", 1000, 1001),
        ("p_max_attempts", 1, 0),
        ("p_delay", f"{TEN_YEARS} seconds", f"{TEN_YEARS}.001 seconds"),
        ("p_delay", "0", "-1 second"),
        ("p_timeout", "0.1 seconds", "0.099 seconds"),
        ("p_timeout", f"{TEN_YEARS} seconds", f"{TEN_YEARS}.001 seconds"),
        ("p_retry_base", "0", "-1 second"),
        ("p_retry_cap", f"{TEN_YEARS} seconds", f"{TEN_YEARS}.001 seconds"),
    ],
)
def test_the_last_good_value_passes_and_the_first_bad_one_is_refused(
    connection: Connection, name: str, good: object, bad: object
) -> None:
    enqueue(connection, **{name: good})
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        enqueue(connection, **{name: bad})
    assert refused.value.diag.message_hint


@pytest.mark.parametrize(
    "part",
    [
        [1] * 340_000,
        {str(i): {} for i in range(100_000, 170_000)},
        "é" * 500_000,
        [{"a": [], "b": [" , : "] * 3, "c": ["\\", '"']}] * 13_000,
    ],
    ids=["a list", "an object", "a str", "a mixture"],
)
def test_a_payload_is_measured_as_the_client_measures_it(connection: Connection, part: Any) -> None:
    most = limits.PAYLOAD_BYTES
    filler = "x" * (most - len(dumps(["", part], "payload", most).encode()))
    full = dumps([filler, part], "payload", most)
    enqueue(connection, p_payload=full)
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="payload is 1048577 bytes"):
        enqueue(connection, p_payload=full.replace('["', '["x', 1))


def test_what_the_client_takes_the_server_takes(connection: Connection) -> None:
    plane = PostgresControlPlane(connection)
    most = limits.TEN_YEARS
    plane.enqueue("q" * 128, "k", delay=most, timeout=most, retry_base=most, retry_cap=most)
    lease = plane.claim_job(
        plane.enqueue("default", "k").job_id, "w" * 256, lease_for=timedelta(hours=24)
    )
    assert lease is not None
    answer = plane.release(lease.job_id, "w" * 256, lease.token, started=True, delay=most)
    assert answer.next_attempt_at is not None


def test_a_worker_may_have_a_thousand_leases_and_no_more_in_one_call(
    connection: Connection,
) -> None:
    plane = PostgresControlPlane(connection)
    assert len(plane.renew("ada", [(i, 1) for i in range(1000)])) == 1000
    with pytest.raises(InvalidArgument, match="leases has 1001 members"):
        plane.renew("ada", [(i, 1) for i in range(1001)])
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        connection.execute(
            "select tenure.renew('ada', array(select generate_series(1, 1001)),"
            " array(select generate_series(1, 1001)))"
        )
