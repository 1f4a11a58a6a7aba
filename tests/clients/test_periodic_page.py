"""O47: a slot of a schedule makes one job, by what docs/periodic.md shows."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from tenure import Tenure
from tests.clients import readme
from tests.postgres.races import LONGEST_WAIT, connected, started, wait_until_blocked

TEXT = (readme.README.parent / "docs" / "periodic.md").read_text(encoding="utf-8")

SLOT = datetime(2031, 1, 1, 5, 30, tzinfo=UTC)


def block(language: str) -> str:
    [found] = re.findall(rf"(?ms)^```{language}\n(.*?)^```$", TEXT)
    return str(found)


@pytest.fixture
def page(fresh_dsn: str) -> Iterator[dict[str, Any]]:
    """The names that the page's program defines, on a database that has its table."""
    with psycopg.connect(fresh_dsn) as connection:
        connection.execute(block("sql").encode())
    program = block("python").replace("postgresql://localhost/shop", fresh_dsn)
    names: dict[str, Any] = {}
    exec(compile(program, "periodic.md", "exec"), names)
    yield names
    names["app"].close()


@pytest.fixture
def app(page: dict[str, Any]) -> Tenure:
    found = page["app"]
    assert isinstance(found, Tenure)
    return found


Tick = Callable[[psycopg.Connection[Any], str, datetime], bool]


@pytest.fixture
def tick(page: dict[str, Any]) -> Tick:
    found: Tick = page["tick"]
    return found


def test_of_three_processes_at_one_tick_one_enqueues_the_job(
    fresh_dsn: str, app: Tenure, tick: Tick
) -> None:
    """The clock of one is two seconds ahead: that names the same slot."""
    ready = threading.Barrier(3)

    def process(ahead: timedelta) -> bool:
        with connected(fresh_dsn) as connection:
            now = SLOT + timedelta(minutes=1) + ahead
            ready.wait()
            return tick(connection, "report", now.replace(minute=30, second=0))

    with ThreadPoolExecutor(3) as processes:
        taken = list(processes.map(process, [timedelta(0), timedelta(0), timedelta(seconds=2)]))

    assert sorted(taken) == [False, False, True]
    [job] = app.enqueued(kind="report")
    assert job.payload == {"slot": SLOT.isoformat()}


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_process_that_comes_second_waits_for_the_end_of_the_first(
    fresh_dsn: str, app: Tenure, tick: Tick, end: str
) -> None:
    with (
        connected(fresh_dsn) as first,
        connected(fresh_dsn) as second,
        connected(fresh_dsn) as watcher,
    ):
        first.execute("begin")
        assert tick(first, "report", SLOT)
        late = started(lambda: tick(second, "report", SLOT))
        wait_until_blocked(watcher, second, by=first)
        first.execute(end)

        assert late.result(LONGEST_WAIT) == (end == "rollback")
    assert len(app.enqueued(kind="report")) == 1


def test_a_slot_stays_taken_when_its_job_has_ended_as_a_dedup_key_does_not(
    fresh_dsn: str, app: Tenure, tick: Tick
) -> None:
    @app.task(name="report")
    def report(job: Any) -> None: ...

    with connected(fresh_dsn) as connection:
        assert tick(connection, "report", SLOT)
        app.enqueue("report", dedup_key="05:30")
        assert len(app.drain()) == 2

        assert not tick(connection, "report", SLOT)
        assert app.enqueue("report", dedup_key="05:30").created
        assert tick(connection, "report", SLOT + timedelta(days=1))


CHANGES = [
    ("Europe/Berlin", date(2030, 3, 31), "00:30", "01:30"),
    ("Europe/Berlin", date(2030, 10, 27), "23:30", "00:30"),
    ("America/New_York", date(2030, 3, 10), "06:30", "07:30"),
    ("America/New_York", date(2030, 11, 3), "05:30", "07:30"),
]
"""The days on which clocks change, and where the slots of 01:30 and 02:30 lie in UTC."""


@pytest.mark.parametrize(("zone", "day", "first", "second"), CHANGES)
def test_each_local_slot_comes_once_a_day_when_clocks_change(
    page: dict[str, Any], zone: str, day: date, first: str, second: str
) -> None:
    for at, expected in ((time(1, 30), first), (time(2, 30), second)):
        days = [day + timedelta(days=n) for n in range(-2, 3)]
        slots = [page["slot"](each, at, zone) for each in days]

        assert slots[2].strftime("%H:%M") == expected
        assert len(set(slots)) == 5
        assert all(
            timedelta(hours=23) <= later - earlier <= timedelta(hours=25)
            for earlier, later in pairwise(slots)
        )
        assert {slot.tzinfo for slot in slots} == {UTC}
