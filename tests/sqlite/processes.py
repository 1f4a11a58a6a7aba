"""Real processes that start together, and what they run."""

from __future__ import annotations

import multiprocessing
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from multiprocessing.context import SpawnProcess
from pathlib import Path
from queue import Empty
from threading import Barrier
from typing import Any

from tenure.sqlite import SqliteControlPlane
from tenure.values import LeaseRenewal, Verdict

SPAWN = multiprocessing.get_context("spawn")


def together(work: Callable[..., Any], arguments: list[tuple[object, ...]]) -> list[Any]:
    """What `work` returns, in a process for each of `arguments`; all begin at the same moment."""
    barrier = SPAWN.Barrier(len(arguments))
    answers = SPAWN.Queue()
    processes = [
        SPAWN.Process(target=_run, args=(barrier, answers, work, number, given), daemon=True)
        for number, given in enumerate(arguments)
    ]
    for process in processes:
        process.start()
    try:
        found = dict(_answer(answers, processes) for _ in processes)
    finally:
        for process in processes:
            process.join(10)
    errors = [answer for answer in found.values() if isinstance(answer, BaseException)]
    if errors:
        raise errors[0]
    return [found[number] for number in range(len(arguments))]


def _run(
    barrier: Barrier, answers: Any, work: Callable[..., Any], number: int, given: tuple[object, ...]
) -> None:
    try:
        barrier.wait(30)
        answer = work(*given)
    except BaseException as error:
        answer = error
    answers.put((number, answer))


def _answer(answers: Any, processes: list[SpawnProcess]) -> tuple[int, Any]:
    deadline = time.monotonic() + 50
    while time.monotonic() < deadline:
        try:
            answer: tuple[int, Any] = answers.get(timeout=0.5)
            return answer
        except Empty:
            assert all(not p.exitcode for p in processes), "a process died"
    raise TimeoutError("the processes did not end")


def open_and_close(path: Path) -> int:
    """The id of a job that was enqueued in between."""
    with closing(SqliteControlPlane(path)) as plane:
        return plane.enqueue("mail", "send").job_id


def claim_all(path: Path, worker_id: str) -> list[tuple[int, int]]:
    """Claim one by one until nothing is left."""
    leased = []
    with closing(SqliteControlPlane(path)) as plane:
        while leases := plane.claim(["mail"], worker_id):
            leased += [(lease.job_id, lease.token) for lease in leases]
    return leased


def live_many_lives(path: Path, worker_id: str, *, until: Path) -> int:
    """Enqueue, claim, renew, complete, until a file is there; how many jobs were completed."""
    completed = 0
    with closing(SqliteControlPlane(path)) as plane:
        while not until.exists():
            plane.enqueue("mail", "send")
            for lease in plane.claim(["mail"], worker_id):
                shown = (lease.job_id, lease.token)
                [renewal] = plane.renew(worker_id, [shown])
                assert renewal.outcome is LeaseRenewal.RENEWED
                settled = plane.complete(lease.job_id, worker_id, lease.token)
                assert settled.verdict is Verdict.OK
                completed += 1
    return completed


def hold_now_and_then(path: Path, times: int) -> int:
    """Be an application that keeps its write transactions open for too long."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as connection:
        connection.execute("create table if not exists application (row text)")
        for _ in range(times):
            connection.execute("begin immediate")
            connection.execute("insert into application values ('held')")
            time.sleep(0.4)
            connection.execute("commit")
            time.sleep(0.3)
    return times


def live_beside_an_application(path: Path, name: str) -> int:
    over = path.with_suffix(".over")
    if name != "application":
        return live_many_lives(path, name, until=over)
    try:
        return hold_now_and_then(path, 4)
    finally:
        over.touch()
