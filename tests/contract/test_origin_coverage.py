"""Every guarantee of the system that tenure descends from is under a test."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

ROWS = """
the whole of ownership behind one interface
  cells: every verb does what the table says
  cells: the table has a cell for every verb in every state
  protocol: every backend has every method as the protocol writes it
the job row is the only authority for identity, attempts, cancellation and expiry
  lease: a renewed lease is nobody else s however long its job has run
  operators: a running job is asked to stop and its renewal says so
  sweep: a sweep says what became of each lapsed lease
a lease is a frozen value and ownership is proved again by every change
  protocol: a lease is a value that cannot be changed
  lease: the lease before a reclaim writes nothing any more
  ending: a late failure does not undo a newer attempt
  guard: a worker that comes late cannot write its own rows either
a deferred renewal is not a loss
  guard: while a guard is open the job s other calls are deferred
  runner/heartbeat: a deferred renewal is no loss
a worker executes what it owns and decides how that ends
  worker: a worker runs the job it was lent and completes it
  worker: a worker asks for no job of its own
  worker: a worker whose job was reclaimed meanwhile writes nothing
a runner owns identity, loop, sweep cadence and shutdown
  runner/shutdown: a signal lets the running job end and the process return
  runner/runner: a stop lets running jobs end and claims no more
  runner/runner: a dead workers job is swept while every slot is busy
worker ids are unique across many calls and processes
  runner/identity: no two calls return the same worker id
  runner/identity: a forked process makes worker ids of its own
of two workers with the same stale candidate one gets it
  claim: of two workers with the same candidate one gets it and the other spends nothing
  claim: reading the candidate reserves nothing
  races: two workers at the same candidate make one owner
claims take the oldest eligible job, each job once
  claim: jobs come by queue order then priority then due time then id
  claim: a job in backoff is invisible until it is due
  claim: a running job cannot be claimed again
  claim: different workers get different jobs
  races: claims of many workers at once share out every job once
only the owner renews, only while running, and sees a cancellation in the same call
  lease: only the owner renews and a refusal changes nothing
  lease: one renewal call answers for each lease on its own
  operators: a running job is asked to stop and its renewal says so
the scan for lapsed leases is a read
  lease: lapsed is a read in claim order
a reclaim pins the prior owner, token and instant, and spends no attempt
  lease: a reclaim pins the prior owner token and instant exactly
  lease: a renewal between the scan and the reclaim wins
  lease: an active lease is never reclaimed
  lease: a reclaim mints a token and spends no attempt
  races: a lease that many pinned is reclaimed by one
an owned update is refused for others, and neither commits nor rolls back
  cells: every verb does what the table says
  guard: rows written under a guard are committed with the completion
  guard: a rollback takes the rows and the completion along
  guard: progress and settling go on inside the guarded transaction
a cancellation is idempotent, survives a handoff and beats a racing completion
  operators: an accepted cancellation is undone by nothing
  operators: a completion that raced an accepted cancellation loses
  races: of a completion and a cancellation exactly one is accepted
a crash between seal and completion is healed, not redone
  ending: a sealed result is completed by a sweep and not done again
  ending: the worker of a healed job is told that it is done already
a stale job is healed, queued again with backoff, or failed at the limit
  sweep: a sweep says what became of each lapsed lease
  sweep: backoff doubles from the base and stays within its jitter
  sweep: a job that always kills its worker starts exactly max attempts times
the heartbeat renews during a long stage
  runner/runner: a handler longer than its lease keeps its job
  runner/heartbeat: a beat that cannot be written is tried again and is no loss
  lease: progress moves the lease only when told how far
retries are bounded
  worker: a handler that raises is tried again until its attempts are spent
  sweep: backoff is capped and its thousandth attempt does not overflow
a runner drains, sweeps, outlives a failing job and a failing sweep, and stops
  runner/runner: a drain runs what is due and returns
  runner/runner: one failing job does not stop the loop
  runner/runner: a failing sweep does not stop the loop
  runner/runner: the runner stops twice without harm and also before it started
instants are UTC and naive ones are refused
  enqueue: a run at in another zone is the same instant
  bad_input: bad input is refused alike everywhere and nothing is written
  protocol: every instant that comes out is utc
the claim race is arranged, and deleting a guard makes a test fail
  postgres/candidate_race: one of the workers that read a candidate together gets it
  postgres/candidate_race: a candidate whose lease was rolled back has spent nothing
  races: two workers at the same candidate make one owner
"""
"""A guarantee, and below it the files and the names of its tests."""


def rows() -> dict[str, list[str]]:
    found = {}
    for block in ROWS.strip().replace("\n  ", "\t").splitlines():
        row, *tests = block.split("\t")
        found[row] = tests
    return found


@cache
def functions(file: str) -> set[str]:
    folder, _, name = file.rpartition("/")
    source = TESTS / (folder or "contract") / f"test_{name}.py"
    tree = ast.parse(source.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", rows())
def test_the_tests_of_every_guarantee_exist(row: str) -> None:
    tests = rows()[row]
    assert tests
    for test in tests:
        file, _, sentence = test.partition(": ")
        assert f"test_{sentence}".replace(" ", "_") in functions(file), f"{test} is gone"
