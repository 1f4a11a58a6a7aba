"""One job seen through: how each way a handler ends decides how the lease ends."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tenure import (
    CancelRequested,
    InvalidArgument,
    Job,
    LeaseLost,
    ServerUnavailable,
    Verdict,
    Worker,
)
from tenure.standing import Standing
from tests.runner.fakes import Clock, Script, lease


def run(script: Script, handler: Any, standing: Standing | None = None, **changes: Any) -> Any:
    worker = Worker(script, {"work": handler})
    return worker.run(standing.lease if standing else lease(**changes), standing)


def test_what_the_handler_returns_completes_the_job() -> None:
    script = Script(Verdict.OK)

    settled = run(script, lambda job: {"payload": job.payload}, payload=[1])

    assert script.calls == [("complete", {"result": {"payload": [1]}})]
    assert settled.verdict is Verdict.OK


def test_a_completion_that_was_written_already_counts_as_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    script = Script(Verdict.ALREADY)

    settled = run(script, lambda job: None)

    assert script.verbs == ["complete"]
    assert settled.verdict is Verdict.ALREADY
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


def test_a_completion_that_cannot_be_written_is_tried_again_and_never_made_a_failure() -> None:
    script = Script(
        psycopg.errors.QueryCanceled("57014"),
        psycopg.errors.QueryCanceled("57014"),
        psycopg.errors.DeadlockDetected("40P01"),
        ServerUnavailable("the connection dropped after the commit"),
        Verdict.ALREADY,
    )

    settled = run(script, lambda job: 1)

    assert script.verbs == ["complete"] * 5
    assert settled.verdict is Verdict.ALREADY


def test_a_deferred_completion_is_tried_again() -> None:
    script = Script(Verdict.DEFERRED, Verdict.OK)

    assert run(script, lambda job: 1).verdict is Verdict.OK
    assert script.verbs == ["complete", "complete"]


def test_a_lost_completion_is_logged_and_dropped(caplog: pytest.LogCaptureFixture) -> None:
    script = Script(Verdict.LOST)

    settled = run(script, lambda job: 1)

    assert script.verbs == ["complete"]
    assert settled.verdict is Verdict.LOST
    [record] = [r for r in caplog.records if "is lost" in r.getMessage()]
    assert record.__dict__["job_id"] == 7


def test_nothing_is_written_for_a_lease_whose_time_was_over_before_the_handler_ended() -> None:
    clock = Clock()
    standing = Standing(lease(), sent=clock.now, lease_for=timedelta(seconds=30), monotonic=clock)
    script = Script()

    def outlast_the_lease(job: Job) -> None:
        clock.now += 30
        with pytest.raises(LeaseLost, match="not renewed in time"):
            job.check()

    assert run(script, outlast_the_lease, standing) is None
    assert script.calls == []


def test_tries_to_complete_end_with_the_lease() -> None:
    clock = Clock()
    standing = Standing(lease(), sent=clock.now, lease_for=timedelta(seconds=30), monotonic=clock)

    class Down(Script):
        def complete(self, *arguments: Any) -> Any:
            self.calls.append(("complete", {}))
            clock.now += 20
            raise ServerUnavailable("down")

    script = Down()

    assert run(script, lambda job: 1, standing) is None
    # Two while the lease was good, and the one after its loss that tells already from lost.
    assert script.verbs == ["complete"] * 3


def test_a_completion_that_raced_an_accepted_cancellation_loses() -> None:
    script = Script(Verdict.CANCEL_REQUESTED, Verdict.OK)

    run(script, lambda job: 1)

    assert script.verbs == ["complete", "acknowledge_cancel"]


def test_a_result_that_is_not_json_fails_the_job_for_good() -> None:
    script = Script(InvalidArgument("result.x: Decimal is not JSON"), Verdict.OK)

    run(script, lambda job: 1)

    [_, (verb, rest)] = script.calls
    assert verb == "fail"
    assert rest["failure"].error_type == "result not storable"
    assert rest["failure"].message == "result.x: Decimal is not JSON"
    assert not rest["failure"].retryable


def test_an_exception_is_a_failure_with_its_type_message_and_traceback() -> None:
    script = Script(Verdict.OK)

    def divide(job: Job) -> float:
        return 1 / 0

    run(script, divide)

    [(verb, rest)] = script.calls
    assert verb == "fail"
    assert rest["failure"].error_type == "ZeroDivisionError"
    assert rest["failure"].message == "division by zero"
    assert "in divide" in rest["failure"].traceback
    assert rest["failure"].retryable


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        GeneratorExit(),
        asyncio.CancelledError(),
        MemoryError(),
        LeaseLost("of another job"),
        CancelRequested("of another job"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_exception_of_a_handler_gets_past_the_worker(error: BaseException) -> None:
    script = Script(Verdict.OK)

    def handler(job: Job) -> None:
        raise error

    run(script, handler)

    [(verb, rest)] = script.calls
    assert verb == "fail"
    assert rest["failure"].error_type == type(error).__name__


def test_a_keyboard_interrupt_in_the_main_thread_gives_the_job_back_and_goes_on() -> None:
    assert threading.current_thread() is threading.main_thread()
    script = Script(Verdict.OK)

    def interrupted(job: Job) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(script, interrupted)

    assert script.calls == [("release", {"started": True, "delay": timedelta(0)})]


def test_a_keyboard_interrupt_in_another_thread_is_a_failure_of_the_job() -> None:
    script = Script(Verdict.OK)

    def interrupted(job: Job) -> None:
        raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as pool:
        pool.submit(run, script, interrupted).result()

    assert script.verbs == ["fail"]


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (Unprintable(), "(its text cannot be had: RuntimeError)"),
        (ValueError("a\0b\ud800"), "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_the_text_of_an_error_is_written_whatever_it_is(error: Exception, message: str) -> None:
    script = Script(Verdict.OK)

    def handler(job: Job) -> None:
        raise error

    run(script, handler)

    [(_, rest)] = script.calls
    assert rest["failure"].message == message


def test_a_very_long_error_is_cut() -> None:
    script = Script(Verdict.OK)

    def handler(job: Job) -> None:
        raise RuntimeError("x" * 50_000_000)

    run(script, handler)

    [(_, rest)] = script.calls
    assert len(rest["failure"].message.encode()) <= 8 * 1024
    assert len(rest["failure"].traceback.encode()) <= 32 * 1024


def test_a_sealed_job_completes_although_its_handler_raises_afterwards() -> None:
    script = Script(Verdict.OK, Verdict.OK)

    def handler(job: Job) -> None:
        job.seal("done")
        raise RuntimeError("while cleaning up")

    run(script, handler)

    assert script.calls == [("seal", {"result": "done"}), ("complete", {"result": None})]


def test_a_job_sealed_by_an_earlier_call_is_completed_when_it_cannot_be_failed() -> None:
    script = Script(Verdict.SEALED, Verdict.OK)

    def handler(job: Job) -> None:
        raise RuntimeError("it does not know that it sealed")

    run(script, handler)

    assert script.verbs == ["fail", "complete"]


def test_a_seal_that_is_refused_stops_the_handler() -> None:
    for verdict, error in [
        (Verdict.LOST, LeaseLost),
        (Verdict.CANCEL_REQUESTED, CancelRequested),
    ]:
        script = Script(verdict, Verdict.OK)
        went_on: list[bool] = []

        def handler(job: Job, error: Any = error, went_on: list[bool] = went_on) -> None:
            with pytest.raises(error):
                job.seal()
            went_on.append(True)
            job.check()

        run(script, handler)

        assert went_on
        assert "complete" not in script.verbs


def test_a_cancelled_handler_acknowledges() -> None:
    script = Script(Verdict.OK)
    standing = Standing(lease(), sent=time.monotonic(), lease_for=timedelta(hours=1))
    standing.request_cancel()

    run(script, lambda job: job.check(), standing)

    assert script.verbs == ["acknowledge_cancel"]


def test_progress_that_cannot_be_written_does_not_stop_the_handler() -> None:
    script = Script(ServerUnavailable("down"), Verdict.DEFERRED, Verdict.OK, Verdict.OK)

    run(script, lambda job: [job.progress(n) for n in range(3)])

    assert script.calls[-1] == ("complete", {"result": [False, False, True]})


def test_a_kind_without_a_handler_is_given_back_uncharged_later_each_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    delays = []
    for token in (1, 2, 3, 10, 30):
        script = Script(Verdict.OK)
        Worker(script, {}).run(lease(token=token))
        [(verb, rest)] = script.calls
        assert verb == "release"
        assert rest["started"] is False
        delays.append(rest["delay"].total_seconds())

    assert delays == [1, 2, 4, 512, 600]
    assert "no handler here" in caplog.text


def test_no_log_line_shows_a_payload(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    def handler(job: Job) -> None:
        raise ValueError("without it")

    run(Script(Verdict.OK), handler, payload={"card": "4242 4242"})
    run(Script(Verdict.OK), lambda job: job.payload, payload={"card": "4242 4242"})

    assert caplog.records
    assert "4242" not in caplog.text
    assert {"job_id", "kind", "attempt", "worker_id"} <= set(caplog.records[0].__dict__)
