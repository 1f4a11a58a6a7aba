"""Workers that read the same candidate, and the one of them that gets it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Barrier
from typing import Any

import pytest

from tests.postgres.races import (
    LONGEST_WAIT,
    Connection,
    call,
    enqueued,
    job,
    one,
    started,
)

Session = Callable[[], Connection]


def candidate_of(connection: Connection) -> int:
    (candidate,) = one(connection, "next_eligible_job_id", ["q"])
    assert isinstance(candidate, int)
    return candidate


@pytest.fixture
def pair(session: Session) -> tuple[Connection, Connection]:
    return session(), session()


def test_one_of_the_workers_that_read_a_candidate_together_gets_it(session: Session) -> None:
    workers = {f"worker {n}": session() for n in range(4)}
    together = Barrier(len(workers))

    def race(worker_id: str, connection: Connection) -> Any:
        candidate = candidate_of(connection)
        together.wait(LONGEST_WAIT)
        return candidate, one(connection, "claim_job", candidate, worker_id)

    for _ in range(25):
        job_id = enqueued(next(iter(workers.values())))
        runs = [started(partial(race, w, c)) for w, c in workers.items()]
        answers = [run.result(LONGEST_WAIT) for run in runs]

        assert {candidate for candidate, _ in answers} == {job_id}
        [won] = [lease for _, lease in answers if lease is not None]
        row = job(next(iter(workers.values())), job_id)
        assert (row.worker_id, row.token, row.attempt) == (won.worker_id, 1, 1)


def test_a_candidate_that_is_just_being_leased_is_not_waited_for(
    pair: tuple[Connection, Connection],
) -> None:
    ada, bob = pair
    job_id = enqueued(ada)
    assert candidate_of(ada) == candidate_of(bob) == job_id

    ada.execute("begin")
    assert one(ada, "claim_job", job_id, "ada") is not None

    assert candidate_of(bob) == job_id
    assert one(bob, "claim_job", job_id, "bob") is None
    ada.execute("commit")


def test_a_candidate_that_was_leased_is_no_longer_to_be_had(
    pair: tuple[Connection, Connection],
) -> None:
    ada, bob = pair
    job_id = enqueued(ada)
    assert candidate_of(ada) == candidate_of(bob) == job_id

    ada.execute("begin")
    won = one(ada, "claim_job", job_id, "ada")
    ada.execute("commit")

    assert one(bob, "claim_job", job_id, "bob") is None
    row = job(bob, job_id)
    assert (row.worker_id, row.token, row.attempt) == ("ada", won.token, 1)


def test_a_candidate_whose_lease_was_rolled_back_has_spent_nothing(
    pair: tuple[Connection, Connection],
) -> None:
    ada, bob = pair
    job_id = enqueued(ada)

    ada.execute("begin")
    assert one(ada, "claim_job", job_id, "ada") is not None
    assert one(bob, "claim_job", job_id, "bob") is None
    ada.execute("rollback")

    won = one(bob, "claim_job", job_id, "bob")
    assert (won.worker_id, won.token, won.attempt) == ("bob", 1, 1)


def test_a_claim_passes_over_what_another_claim_holds(pair: tuple[Connection, Connection]) -> None:
    ada, bob = pair
    jobs = [enqueued(ada) for _ in range(8)]

    ada.execute("begin")
    first = call(ada, "claim", ["q"], "ada", 5)
    rest = call(bob, "claim", ["q"], "bob", 5)
    ada.execute("rollback")
    again = call(bob, "claim", ["q"], "bob", 5)

    assert [lease.job_id for lease in first] == jobs[:5]
    assert [lease.job_id for lease in rest] == jobs[5:]
    assert [(lease.job_id, lease.token, lease.attempt) for lease in again] == [
        (job_id, 1, 1) for job_id in jobs[:5]
    ]


def test_a_claim_passes_over_a_candidate_that_is_just_being_leased(
    pair: tuple[Connection, Connection],
) -> None:
    ada, bob = pair
    jobs = [enqueued(ada) for _ in range(3)]

    ada.execute("begin")
    assert one(ada, "claim_job", jobs[0], "ada") is not None

    assert one(bob, "claim", ["q"], "bob").job_id == jobs[1]
    ada.execute("commit")
    assert one(bob, "claim", ["q"], "bob").job_id == jobs[2]
    assert one(bob, "claim", ["q"], "bob") is None


def test_claims_together_share_the_jobs_without_a_double(session: Session) -> None:
    workers = {f"worker {n}": session() for n in range(4)}
    jobs = [enqueued(next(iter(workers.values()))) for _ in range(120)]
    together = Barrier(len(workers))

    def race(worker_id: str, connection: Connection) -> list[Any]:
        leases: list[Any] = []
        together.wait(LONGEST_WAIT)
        while some := call(connection, "claim", ["q"], worker_id, 7):
            assert len(some) <= 7
            leases += some
        return leases

    runs = [started(partial(race, w, c)) for w, c in workers.items()]
    leases = [lease for run in runs for lease in run.result(LONGEST_WAIT)]

    assert sorted(lease.job_id for lease in leases) == jobs
    assert {(lease.token, lease.attempt) for lease in leases} == {(1, 1)}
