"""What a worker leaves behind for people to look at."""

from __future__ import annotations

from collections.abc import Callable

from tests.postgres.races import Connection, call

Session = Callable[[], Connection]


def test_a_worker_of_another_queue_makes_that_queue_seen_too(session: Session) -> None:
    worker = session()
    call(worker, "worker_seen", "ada", ["a"])
    call(worker, "worker_seen", "bob", ["b", "a"])
    seen = worker.execute("select q.queue from tenure.queue as q order by q.queue").fetchall()
    assert seen == [("a",), ("b",)]
