"""One commit for the jobs that many callers enqueue at the same time."""

from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Callable

from tenure.errors import ServerUnavailable
from tenure.forks import begin_anew_after_fork
from tenure.link import BROKEN
from tenure.values import Enqueued, NewJob

AT_ONCE = 2
"""Commits under way, from which on a job waits for the next one."""

TOGETHER = 100
"""Jobs that are added with one commit at the most."""


class GroupCommit:
    """Adds a job at once while few callers do, and with those of others when many do.

    Of the callers that come while `AT_ONCE` commits are under way, the first one adds the jobs
    of all that wait by then: the longer a commit takes, the more share the next one. Nobody
    waits for company, and each returns when its own job is committed, with an answer of its own.

    What is refused as a whole was not written, so each caller then tries alone and gets the
    error that is its own. A connection that breaks leaves them all in doubt, as it leaves one. A
    job with a dedup key, which may wait for somebody's transaction, keeps nobody else waiting.

    The idea is the group commit of database logs. Threads: any; a forked child begins anew.
    """

    def __init__(
        self,
        add: Callable[[NewJob], Enqueued],
        add_many: Callable[[list[NewJob]], list[Enqueued]],
    ) -> None:
        """Either commits before it returns, and writes nothing when it is refused."""
        self._add = add
        self._add_many = add_many
        self.after_fork()
        begin_anew_after_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._under_way = 0
        self._waiting: deque[_Caller] = deque()

    def add(self, job: NewJob) -> Enqueued:
        """Add one job, and return once it is committed. Raises what `add` raises."""
        if job.dedup_key is not None:
            return self._add(job)
        caller = _Caller(job)
        try:
            with self._lock:
                if self._under_way < AT_ONCE:
                    self._under_way += 1
                    caller.lead()
                else:
                    self._waiting.append(caller)
            caller.turn.acquire()
            if caller.leads:
                self._lead(caller)
        finally:
            self._leave(caller)
        if caller.broken is not None:
            raise copy.copy(caller.broken) from caller.broken
        return caller.answer or self._add(job)

    def _lead(self, leader: _Caller) -> None:
        with self._lock:
            most = min(len(self._waiting), TOGETHER - 1)
            others = [self._waiting.popleft() for _ in range(most)]
        if not others:
            leader.answer = self._add(leader.job)
            return
        try:
            self._add_together([leader, *others])
        finally:
            for caller in others:
                caller.turn.release()

    def _leave(self, caller: _Caller) -> None:
        """It waits no more, also when it was interrupted; the first that waits leads next."""
        with self._lock:
            if caller in self._waiting:
                self._waiting.remove(caller)
            elif caller.leads and self._waiting:
                self._waiting.popleft().lead()
            elif caller.leads:
                self._under_way -= 1

    def _add_together(self, callers: list[_Caller]) -> None:
        broken: Exception | None = ServerUnavailable("the call that sent this job was interrupted")
        try:
            answers = self._add_many([caller.job for caller in callers])
            for caller, answer in zip(callers, answers, strict=True):
                caller.answer = answer
            broken = None
        except BROKEN as error:
            broken = error
        except Exception:
            broken = None
        finally:
            for caller in callers:
                caller.broken = broken


class _Caller:
    """A call that has not returned; its thread waits for the release of `turn`."""

    __slots__ = ("answer", "broken", "job", "leads", "turn")

    def __init__(self, job: NewJob) -> None:
        self.job = job
        self.turn = threading.Lock()
        self.turn.acquire()
        self.leads = False
        """It is to add the jobs of all that wait."""
        self.answer: Enqueued | None = None
        """None although its turn has come: it is to try alone."""
        self.broken: Exception | None = None
        """Why nobody knows whether its job was added."""

    def lead(self) -> None:
        self.leads = True
        self.turn.release()
