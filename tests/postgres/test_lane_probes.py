"""How often a claim looks into the index of lanes."""

from __future__ import annotations

from collections.abc import Callable

from tests.postgres.races import SECOND, Connection, call

Session = Callable[[], Connection]


def probes(connection: Connection, queues: list[str]) -> int:
    """Scans of the claim index by one claim that finds nothing."""
    connection.execute("begin")
    assert call(connection, "claim", queues, "ada", 1, 30 * SECOND) == []
    row = connection.execute(
        "select pg_stat_get_xact_numscans('tenure.job_lane'::regclass)"
    ).fetchone()
    connection.execute("rollback")
    assert row is not None
    return int(row[0])


def test_a_queue_that_is_named_twice_is_looked_into_once(session: Session) -> None:
    once, twice = session(), session()
    assert probes(twice, ["q", "r", "q"]) == probes(once, ["q", "r"]) > 0
