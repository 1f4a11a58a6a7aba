"""Measures a to d: enqueue in bulk and singly, drain, pick-up latency; interleaved."""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import psycopg

from tests.bench.adapter import AdapterFailed
from tests.bench.catalogue import Installed, Peer
from tests.bench.environments import CannotBeInstalled
from tests.bench.figures import Figure, Results, quantile
from tests.bench.measures import Turn

DRAIN = Figure("drain 1", "c: drain, one process")
FIGURES = (
    Figure("bulk", "a: bulk enqueue"),
    Figure("single 1", "b: single enqueue, 1 connection"),
    Figure("single 16", "b: single enqueue, 16 connections"),
    Figure("single 1 beside a worker", "b: the same beside a worker, 1 connection"),
    Figure("single 16 beside a worker", "b: the same beside a worker, 16 connections"),
    DRAIN,
    Figure("drain 2", "c: drain, two processes"),
    Figure("from call", "d: call to handler, p50", "ms", quantile(0.5), more_is_better=False),
    Figure("from call", "d: call to handler, p99", "ms", quantile(0.99), more_is_better=False),
    Figure("from return", "d: return to handler, p50", "ms", quantile(0.5), more_is_better=False),
    Figure("from return", "d: return to handler, p99", "ms", quantile(0.99), more_is_better=False),
)


@dataclass(frozen=True)
class Sizes:
    """How much of each measure; `rounds` are at least so many."""

    jobs: int
    seconds: float
    latencies: int
    rounds: int
    connections: tuple[int, ...] = (1, 16)


QUICK = Sizes(jobs=20_000, seconds=1.0, latencies=60, rounds=2)
FULL = Sizes(50_000, 3.0, 200, rounds=5, connections=(1, 2, 4, 8, 16))
SHORT = Sizes(20_000, 1.5, 100, rounds=2, connections=(1, 2, 4, 8, 16))
TINY = Sizes(jobs=500, seconds=0.2, latencies=5, rounds=1)


def install(peers: Sequence[Peer], results: Results) -> dict[str, Installed]:
    """Those that can be installed; of the others, why not."""
    installed = {}
    for peer in peers:
        try:
            installed[peer.name] = peer.install()
        except CannotBeInstalled as reason:
            results.absent[peer.name] = str(reason)
            print(f"{peer.name} does not take part: {reason}", flush=True)
    return installed


def in_bulk(turn: Turn, results: Results, sizes: Sizes) -> None:
    """Measures a and c."""
    name, jobs = turn.peer.name, int(sizes.jobs * turn.peer.share)
    for processes in (1, 2):
        results.add("bulk", name, turn.bulk(jobs))
        results.add(f"drain {processes}", name, turn.drain(jobs, processes))


def singly(turn: Turn, results: Results, sizes: Sizes) -> None:
    """Measures d and b."""
    name = turn.peer.name
    if turn.peer.counts:
        called, returned = turn.latencies(sizes.latencies)
        results.add("from call", name, *(seconds * 1e3 for seconds in called))
        results.add("from return", name, *(seconds * 1e3 for seconds in returned))
        with turn.workers():
            for connections in (1, 16):
                rate = turn.single(connections, sizes.seconds)
                results.add(f"single {connections} beside a worker", name, rate)
    for connections in sizes.connections:
        results.add(f"single {connections}", name, turn.single(connections, sizes.seconds))


def interleave(
    begin: Callable[[Peer, Installed], AbstractContextManager[Turn]],
    peers: Sequence[Peer],
    installed: Mapping[str, Installed],
    results: Results,
    part: Callable[[Turn], None],
    *,
    rounds: int,
    until: float = 0,
) -> None:
    """Give each peer a turn, and again; more rounds than asked while they end before `until`.

    The first of one round is the second of the next, so that no peer always follows the same one.
    A peer that fails has no sample of that turn.
    """
    taking_part = [peer for peer in peers if peer.name in installed]
    longest, done = 0.0, 0
    while done < rounds or time.monotonic() + longest < until:
        began = time.monotonic()
        for peer in taking_part:
            try:
                with begin(peer, installed[peer.name]) as its_turn:
                    kept = {"history": "kept"} if peer.history else {}
                    results.about[peer.name] = its_turn.about | kept
                    part(its_turn)
            except (AdapterFailed, psycopg.Error, sqlite3.Error) as error:
                print(f"{peer.name} failed: {error}", file=sys.stderr, flush=True)
        taking_part = taking_part[1:] + taking_part[:1]
        longest, done = max(longest, time.monotonic() - began), done + 1
