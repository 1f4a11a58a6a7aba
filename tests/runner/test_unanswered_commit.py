"""The COMMIT of job.transaction() that is never answered, because the connection is cut at it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from tenure import CommitInDoubt, Job, JobStatus, LeaseLost, Tenure, Worker
from tenure.standing import Standing
from tenure.transactions import Transactions
from tests.runner.conftest import Start
from tests.runner.waiting import comes, ends, eventually, status_of
from tests.tools.cutting import Cut, Wire, wire

INSERT = "insert into receipts values (1)"


@pytest.fixture
def looking(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table receipts (n int)")
        yield connection


@pytest.fixture
def cut_wire(dsn: str) -> Iterator[tuple[Wire, Tenure]]:
    """An app whose connections are cut at COMMIT."""
    with wire(dsn) as (made, through), Tenure(through) as app:
        yield made, app


def receipts(looking: psycopg.Connection[Any]) -> int:
    row = looking.execute("select count(*) from receipts").fetchone()
    assert row is not None
    return int(row[0])


def attempts(app: Tenure, job_id: int) -> list[str | None]:
    return [attempt.error_type for attempt in app.store.records().attempts(job_id)]


KINDS = ["its own", "psycopg", "Connection", "Session"]


@contextmanager
def connection_of(app: Tenure, kind: str) -> Iterator[tuple[Any, Callable[[Any], object]]]:
    """What to pass to job.transaction(), and how to write a receipt with what it gives."""
    dsn = app.store.dsn  # type: ignore[union-attr]
    with ExitStack() as stack:
        if kind == "its own":
            yield None, lambda given: given.execute(INSERT)
        elif kind == "psycopg":
            connection = stack.enter_context(psycopg.connect(dsn))
            yield connection, lambda given: given.execute(INSERT)
        else:
            engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))
            stack.callback(engine.dispose)
            opened = engine.connect() if kind == "Connection" else Session(engine)
            yield stack.enter_context(opened), lambda given: given.execute(text(INSERT))


@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_that_reached_the_server_has_ended_the_job(
    cut_wire: tuple[Wire, Tenure], looking: psycopg.Connection[Any], kind: str
) -> None:
    made, app = cut_wire

    @app.task(retry_base=timedelta(0))
    def bill(job: Job) -> None:
        with connection_of(app, kind) as (connection, write), job.transaction(connection) as given:
            write(given)
            made.arm(Cut.BEFORE_THE_REPLY)

    handle = app.enqueue(bill)
    app.worker().run_until_idle()

    assert status_of(app, handle.job_id) is JobStatus.COMPLETED
    assert attempts(app, handle.job_id) == []
    assert receipts(looking) == 1


@pytest.mark.parametrize("catches", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_that_did_not_reach_the_server_fails_the_attempt(
    cut_wire: tuple[Wire, Tenure], looking: psycopg.Connection[Any], kind: str, catches: bool
) -> None:
    made, app = cut_wire
    seen: list[str] = []

    @app.task(retry_base=timedelta(0))
    def bill(job: Job) -> str:
        with connection_of(app, kind) as (connection, write):
            try:
                with job.transaction(connection) as given:
                    write(given)
                    if job.attempt == 1:
                        made.arm(Cut.BEFORE_THE_REQUEST)
            except CommitInDoubt:
                seen.append("in doubt")
                for again in (job.seal, lambda: job.transaction().__enter__()):
                    with pytest.raises(CommitInDoubt):
                        again()
                if not catches:
                    raise
        return "what must never be taken for the end of the first attempt"

    handle = app.enqueue(bill)
    app.worker().run_until_idle()

    assert seen == ["in doubt"]
    assert attempts(app, handle.job_id) == ["CommitInDoubt"]
    assert handle.result(0) is None
    assert receipts(looking) == 1


def test_a_commit_the_server_is_still_at_work_on_is_neither_repeated_nor_lost(
    cut_wire: tuple[Wire, Tenure], looking: psycopg.Connection[Any], start: Start
) -> None:
    made, app = cut_wire
    in_doubt = threading.Event()
    looking.execute(
        """
        create function hold_up() returns trigger language plpgsql as $$
        begin perform pg_advisory_xact_lock_shared(99); return null; end $$;
        create constraint trigger held_up after insert on receipts
          deferrable initially deferred for each row execute function hold_up();
        select pg_advisory_lock(99)
        """
    )

    @app.task(retry_base=timedelta(0))
    def bill(job: Job) -> None:
        try:
            with job.transaction() as connection:
                connection.execute(INSERT)
                made.arm(Cut.AFTER_THE_REQUEST)
        except CommitInDoubt:
            in_doubt.set()
            raise

    handle = app.enqueue(bill)
    start(app)
    comes(in_doubt, "the commit was in doubt")
    assert status_of(app, handle.job_id) is JobStatus.RUNNING
    looking.execute("select pg_advisory_unlock(99)")

    ends(app, handle.job_id, JobStatus.COMPLETED)
    assert attempts(app, handle.job_id) == []
    assert receipts(looking) == 1


def test_a_session_that_was_terminated_in_its_commit_fails_the_attempt(
    cut_wire: tuple[Wire, Tenure], looking: psycopg.Connection[Any], start: Start
) -> None:
    _, app = cut_wire
    looking.execute(
        """
        create function hold_up() returns trigger language plpgsql as $$
        begin perform pg_advisory_xact_lock_shared(99); return null; end $$;
        create constraint trigger held_up after insert on receipts
          deferrable initially deferred for each row execute function hold_up();
        select pg_advisory_lock(99)
        """
    )

    @app.task(retry_base=timedelta(0))
    def bill(job: Job) -> None:
        with job.transaction() as connection:
            connection.execute(INSERT)

    handle = app.enqueue(bill)
    start(app)
    held_up = (
        "select pid from pg_stat_activity where datname = current_database()"
        " and query = 'COMMIT' and wait_event = 'advisory'"
    )
    eventually(lambda: looking.execute(held_up).fetchall(), "the commit is held up")
    looking.execute(f"select pg_terminate_backend(pid, 5000) from ({held_up}) as held_up")
    looking.execute("select pg_advisory_unlock(99)")

    ends(app, handle.job_id, JobStatus.COMPLETED)
    assert attempts(app, handle.job_id) == ["CommitInDoubt"]
    assert receipts(looking) == 1


def test_while_the_server_is_away_the_job_is_asked_for_again(
    cut_wire: tuple[Wire, Tenure], looking: psycopg.Connection[Any]
) -> None:
    made, app = cut_wire

    @app.task
    def bill(job: Job) -> None:
        with job.transaction() as connection:
            connection.execute(INSERT)
            made.arm(Cut.BEFORE_THE_REPLY, away=3)

    handle = app.enqueue(bill)
    app.worker().run_until_idle()

    assert made.turned_away == 3
    assert status_of(app, handle.job_id) is JobStatus.COMPLETED
    assert attempts(app, handle.job_id) == []
    assert receipts(looking) == 1


def test_who_cannot_find_out_before_the_lease_is_over_writes_nothing(
    cut_wire: tuple[Wire, Tenure], looking: psycopg.Connection[Any], dsn: str
) -> None:
    made, app = cut_wire
    raised: list[type[BaseException]] = []

    def bill(job: Job) -> None:
        try:
            with job.transaction() as connection:
                connection.execute(INSERT)
                made.arm(Cut.BEFORE_THE_REPLY, away=1_000_000)
        except BaseException as error:
            raised.append(type(error))
            raise

    with Tenure(dsn) as direct, direct.producer.planes.lent() as plane:
        job_id = direct.enqueue("bill").job_id
        lease = plane.claim_job(job_id, "ada")
        assert lease is not None
        lease_for = timedelta(seconds=1)
        standing = Standing(lease, sent=time.monotonic(), lease_for=lease_for)
        worker = Worker(plane, {"bill": bill}, transactions=Transactions(app.store))
        assert worker.run(lease, standing) is None

        assert raised == [LeaseLost]
        assert made.turned_away > 0
        assert status_of(direct, job_id) is JobStatus.COMPLETED
        assert receipts(looking) == 1
