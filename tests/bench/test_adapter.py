"""The adapter programs' commands, with tenure's own."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tenure import embedded
from tests.bench import catalogue
from tests.bench.adapter import AdapterFailed
from tests.bench.measures import Turn, prove_once, turn, wait_until_handled
from tests.bench.server import cpu


@pytest.fixture(scope="module")
def its_turn() -> Iterator[Turn]:
    with (
        embedded.temporary() as server,
        turn(server, catalogue.TENURE, catalogue.TENURE.install()) as made,
    ):
        yield made


def test_what_is_enqueued_in_bulk_is_drained_by_two_processes(its_turn: Turn) -> None:
    assert its_turn.bulk(60) > 0
    assert its_turn.place.ask(its_turn.peer.unfinished) == 60

    assert its_turn.drain(60, processes=2) > 0

    assert its_turn.place.ask(its_turn.peer.unfinished) == 0


def test_jobs_enqueued_one_by_one_are_counted(its_turn: Turn) -> None:
    rate = its_turn.single(connections=3, seconds=0.05)
    there = int(its_turn.place.ask(its_turn.peer.unfinished))

    with its_turn.workers() as workers:
        wait_until_handled(workers, there)
        its_turn.wait_until_finished()
        prove_once(workers, there)
        with pytest.raises(AdapterFailed, match=r"handler runs"):
            prove_once(workers, there + 1)

    assert 0 < rate <= there / 0.05


def test_urgent_and_delayed_jobs_are_what_they_say(its_turn: Turn) -> None:
    its_turn.bulk(1, urgent=True, delay=3600)

    with psycopg.connect(its_turn.place.url) as connection:
        [(priority, later)] = connection.execute(
            "select priority, next_attempt_at > now() + interval '50 minutes' from tenure.job"
        ).fetchall()

    assert (priority, later) == (0, True)


def test_an_error_of_the_peer_reaches_the_driver(its_turn: Turn) -> None:
    with pytest.raises(AdapterFailed, match=r"^TypeError: .*unknown"):
        its_turn.producer.ask("bulk", first=0, jobs=1, unknown=True)

    assert its_turn.producer.ask("handled") == {"jobs": 0, "first": None}


def test_a_program_that_ends_is_noticed() -> None:
    with (
        catalogue.start(
            catalogue.TENURE,
            catalogue.Installed(("python3", "-c", "raise SystemExit('no such thing')")),
            "postgresql://postgres@/bench?host=/nowhere&port=5432",
        ) as adapter,
        pytest.raises(AdapterFailed, match=r"^ended: "),
    ):
        adapter.ask("handled")


def test_the_cpu_of_a_server_counts_its_children(its_turn: Turn) -> None:
    before = its_turn.database.cpu()
    its_turn.place.ask("select sum(n) from generate_series(1, 1000000) as n")

    assert its_turn.database.cpu() > before
    assert cpu(2**22 + 1) == 0
