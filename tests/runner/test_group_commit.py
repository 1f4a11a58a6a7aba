"""Many callers of one app enqueue at the same time: one commit for those that wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast

import psycopg
import pytest

from tenure import InvalidArgument, NewJob, ServerUnavailable, Tenure, group_commit
from tenure.group_commit import AT_ONCE, TOGETHER, GroupCommit
from tenure.values import Enqueued
from tests.runner.waiting import PATIENCE, comes, eventually


class Database:
    """Commits, of which the first few end when they are told to; each is what it added."""

    def __init__(self) -> None:
        self.commits: list[list[str]] = []
        self.ends = [threading.Event() for _ in range(AT_ONCE)]
        self.fails: Callable[[list[str]], None] = lambda kinds: None
        self.group = GroupCommit(lambda job: self.add_many([job])[0], self.add_many)
        self.threads = ThreadPoolExecutor(TOGETHER + 10)

    def add_many(self, jobs: list[NewJob]) -> list[Enqueued]:
        kinds = [job.kind for job in jobs]
        number = len(self.commits)
        self.commits.append(kinds)
        if number < AT_ONCE:
            comes(self.ends[number], "the commit was let through")
        self.fails(kinds)
        return [Enqueued(int(kind), created=True) for kind in kinds]

    def end_all(self) -> None:
        for event in self.ends:
            event.set()

    def add(self, number: int, **more: Any) -> Future[Enqueued]:
        return self.threads.submit(self.group.add, NewJob(kind=str(number), **more))

    def occupy(self) -> list[Future[Enqueued]]:
        """As many commits as there may be, which do not end yet."""
        first = []
        for number in range(AT_ONCE):
            first.append(self.add(number))
            eventually(lambda n=number: len(self.commits) == n + 1, "a commit was under way")  # type: ignore[misc]
        return first

    def add_in_order(self, *numbers: int) -> list[Future[Enqueued]]:
        """Those wait for a commit, in this order."""
        waiting = self.group._waiting
        added = []
        for number in numbers:
            before = len(waiting)
            added.append(self.add(number))
            eventually(lambda b=before: len(waiting) == b + 1, "the caller waited")  # type: ignore[misc]
        return added


@pytest.fixture
def database() -> Iterator[Database]:
    database = Database()
    yield database
    database.end_all()
    database.threads.shutdown()


def results(futures: list[Future[Enqueued]]) -> list[int]:
    return [future.result(PATIENCE).job_id for future in futures]


def test_a_caller_that_is_alone_waits_for_nobody(database: Database) -> None:
    database.end_all()

    assert results([database.add(7)]) == [7]
    assert database.commits == [["7"]]


def test_those_that_come_meanwhile_share_the_next_commit_in_their_order(
    database: Database,
) -> None:
    first = database.occupy()
    others = database.add_in_order(10, 11, 12)

    database.ends[0].set()

    assert results([first[0], *others]) == [0, 10, 11, 12]
    assert database.commits[AT_ONCE:] == [["10", "11", "12"]]


def test_a_crowd_is_parted_into_commits_of_a_bounded_size(database: Database) -> None:
    first = database.occupy()
    numbers = range(10, 10 + TOGETHER + 2)
    others = database.add_in_order(*numbers)

    database.ends[0].set()

    assert results([first[0], *others]) == [0, *numbers]
    assert list(map(len, database.commits)) == [1] * AT_ONCE + [TOGETHER, 2]


def test_a_job_with_a_key_waits_for_nobody(database: Database) -> None:
    database.occupy()
    database.add_in_order(10)

    assert results([database.add(5, dedup_key="once")]) == [5]

    assert database.commits[AT_ONCE:] == [["5"]]
    database.end_all()


def test_what_is_refused_together_is_tried_alone_and_each_has_its_own_error(
    database: Database,
) -> None:
    def refuse(kinds: list[str]) -> None:
        if "11" in kinds:
            raise InvalidArgument("eleven is right out")

    database.fails = refuse
    database.occupy()
    ten, eleven, twelve = database.add_in_order(10, 11, 12)

    database.ends[0].set()

    assert results([ten, twelve]) == [10, 12]
    with pytest.raises(InvalidArgument, match="eleven is right out"):
        eleven.result(PATIENCE)
    assert sorted(database.commits[AT_ONCE + 1 :]) == [["10"], ["11"], ["12"]]
    assert results([database.add(13)]) == [13]


def test_a_connection_that_breaks_is_the_error_of_all_and_nothing_is_sent_twice(
    database: Database,
) -> None:
    def break_off(kinds: list[str]) -> None:
        if "11" in kinds:
            raise ServerUnavailable("gone", hint="wait")

    database.fails = break_off
    database.occupy()
    doubtful = database.add_in_order(10, 11, 12)

    database.ends[0].set()

    errors = [future.exception(PATIENCE) for future in doubtful]
    assert [str(error) for error in errors] == ["gone (wait)"] * 3
    assert len(set(map(id, errors))) == 3
    assert database.commits[AT_ONCE:] == [["10", "11", "12"]]
    assert results([database.add(13)]) == [13]


def test_an_interrupted_caller_leaves_those_whose_jobs_it_sent_in_doubt(
    database: Database,
) -> None:
    def interrupt(kinds: list[str]) -> None:
        if "11" in kinds:
            raise KeyboardInterrupt

    database.fails = interrupt
    database.occupy()
    leader, other, third = database.add_in_order(10, 11, 12)

    database.ends[0].set()

    assert isinstance(leader.exception(PATIENCE), KeyboardInterrupt)
    assert isinstance(other.exception(PATIENCE), ServerUnavailable)
    assert isinstance(third.exception(PATIENCE), ServerUnavailable)
    assert results([database.add(13), database.add(14), database.add(15)]) == [13, 14, 15]


class Interrupted:
    """A lock in whose wait somebody presses Ctrl-C: at the moment that is said, or as it ends."""

    def __init__(self) -> None:
        self.now = threading.Event()

    def acquire(self) -> None:
        comes(self.now, "the moment of the interrupt")
        raise KeyboardInterrupt

    def release(self) -> None:
        self.now.set()


@pytest.mark.parametrize("its_turn", [False, True], ids=["while it waits", "as its turn comes"])
def test_a_caller_interrupted_in_its_wait_sends_nothing_and_holds_up_nobody(
    database: Database, its_turn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = Interrupted()

    class Caller(group_commit._Caller):
        def __init__(self, job: NewJob) -> None:
            super().__init__(job)
            if job.kind == "10":
                self.turn = cast(threading.Lock, wait)

    monkeypatch.setattr(group_commit, "_Caller", Caller)
    first = database.occupy()
    interrupted, other = database.add_in_order(10, 11)
    if not its_turn:
        wait.now.set()
        assert isinstance(interrupted.exception(PATIENCE), KeyboardInterrupt)

    database.ends[0].set()

    assert results([first[0], other]) == [0, 11]
    assert isinstance(interrupted.exception(PATIENCE), KeyboardInterrupt)
    assert database.commits[AT_ONCE:] == [["11"]]
    database.end_all()
    results(first)
    eventually(lambda: database.group._under_way == 0, "its place was free again")


def test_a_forked_child_begins_anew(database: Database) -> None:
    database.occupy()
    database.add_in_order(10)
    of_the_parent = database.group._waiting[0]

    # What the child does first; none of the parent's threads is there to end a commit.
    database.group.after_fork()
    database.end_all()

    assert results([database.add(11)]) == [11]
    of_the_parent.turn.release()


def test_sixteen_callers_behind_a_lock_are_a_few_transactions(postgres_app: Tenure) -> None:
    producer = postgres_app.producer
    postgres_app.enqueue("first")
    locker = psycopg.connect(postgres_app.store.dsn)  # type: ignore[union-attr]
    with locker, ThreadPoolExecutor(16) as threads:
        locker.execute("lock table tenure.job in exclusive mode")
        handles = {
            number: threads.submit(postgres_app.enqueue, "noop", number) for number in range(16)
        }
        eventually(
            lambda: len(producer._group_commit._waiting) == 16 - AT_ONCE, "the others waited"
        )
        locker.rollback()
        job_ids = {number: handle.result(PATIENCE).job_id for number, handle in handles.items()}
        [(transactions, jobs)] = locker.execute(
            "select count(distinct xmin::text), count(*) from tenure.job where kind = 'noop'"
        ).fetchall()
        payloads: dict[int, int] = dict(
            locker.execute("select id, payload from tenure.job where kind = 'noop'").fetchall()
        )

    assert jobs == 16
    # Each of the first ones may be followed by one of its own.
    assert AT_ONCE < transactions <= 2 * AT_ONCE
    assert payloads == {job_id: number for number, job_id in job_ids.items()}
