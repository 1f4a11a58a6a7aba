"""Runs trials side by side, each in a fork of this process, which has imported everything."""

from __future__ import annotations

import multiprocessing
import os
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

from tests.mutants.trial import Finding, Trial, run

_fork = multiprocessing.get_context("fork")
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class _Running(Generic[K]):
    key: K
    process: BaseProcess
    until: float


@dataclass(frozen=True, slots=True)
class Pool:
    template: str
    """The name of a database in which tenure is installed."""
    size: int

    def findings(
        self, trials: Iterable[tuple[K, Trial]], *, longest: float
    ) -> Iterator[tuple[K, Finding]]:
        """Each trial's finding as it comes in; one that takes longer, in seconds, is ended."""
        waiting = iter(trials)
        running: dict[Connection, _Running[K]] = {}
        while True:
            while len(running) < self.size and (trial := next(waiting, None)) is not None:
                receiver, process = _started(trial[1], self.template)
                running[receiver] = _Running(trial[0], process, time.monotonic() + longest)
            if not running:
                return
            wait(list(running), timeout=1)
            for receiver, one in list(running.items()):
                if receiver.poll():
                    found = _received(receiver)
                elif time.monotonic() > one.until:
                    one.process.kill()
                    found = _unknown(f"it took longer than {longest:g} s")
                else:
                    continue
                one.process.join()
                receiver.close()
                del running[receiver]
                yield one.key, found


def _started(trial: Trial, template: str) -> tuple[Connection, BaseProcess]:
    receiver, sender = _fork.Pipe(duplex=False)
    process = _fork.Process(target=_child, args=(trial, template, sender))
    process.start()
    sender.close()
    return receiver, process


def _child(trial: Trial, template: str, sender: Connection) -> None:
    os.setsid()  # a signal to the group of a trial is no affair of the others
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    try:
        found = run(trial, template)
    except Exception:
        found = _unknown(traceback.format_exc())
    sender.send(found)


def _received(receiver: Connection) -> Finding:
    try:
        found = receiver.recv()
    except EOFError:
        return _unknown("the process died")
    assert isinstance(found, Finding)
    return found


def _unknown(why: str) -> Finding:
    return Finding(failed=(), passed={}, seconds=0, trouble=why)
