"""Writes how leases end, many at a time, on a connection that nothing else uses."""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import TypeAlias

from tenure.backoff import pauses
from tenure.ending import NOT_STORABLE, follow_up, not_storable
from tenure.endings import MOST, Ending, batches
from tenure.ledger import Ledger
from tenure.link import BROKEN
from tenure.standing import Standing
from tenure.values import Outcome, Settled, Verb, Verdict
from tenure.writing import about, log_dropped

logger = logging.getLogger("tenure.worker")

ENOUGH = 100
"""Outcomes that are written without waiting for more."""

LINGER = 0.004
"""Seconds that fewer wait for company, while more is to be expected."""

CLOGGED = 2_000
"""Outcomes that wait to be written, from which on no more is to be begun."""

Settle: TypeAlias = Callable[[str, Sequence[Outcome]], list[Settled]]
"""settle(worker_id, outcomes), over a connection that nothing else uses."""

Told: TypeAlias = Callable[[Standing, Outcome, Settled | None], None]
"""told(standing, outcome, answer), once a lease has ended; no answer: it was lost first. Must
not wait."""


class Settler:
    """A thread that ends leases, each by its own outcome and with a verdict of its own.

    A lease stays in the ledger, and is renewed with the others, until its verdict is in. Outcomes
    are written when there are `ENOUGH` of them, or a few milliseconds after the first one, or at
    once when the process has no other job.

    What could not be written is written again, with growing pauses, while the lease is good: a
    `deferred` one on its own, a statement that failed with all that was in it. A try that broke
    may have been written all the same, so one more follows after the loss of the lease: the
    token decides, and tells `already` from `lost`. An outcome is never replaced by a failure,
    unless it cannot be stored: then the job fails for good as `result not storable`.
    """

    def __init__(
        self,
        settle: Settle,
        ledger: Ledger,
        *,
        told: Told | None = None,
        eased: Callable[[], None] = lambda: None,
    ) -> None:
        """`eased` is called when `clogged` was answered with yes and would not be any more."""
        self._settle = settle
        self._ledger = ledger
        self._told = told
        self._eased = eased
        self._said_clogged = False
        self._new: deque[tuple[Standing, Outcome]] = deque()
        self._later: list[tuple[float, int, Ending]] = []
        self._order = count()
        self._in_hand = 0
        self._ring_at = 1
        self._bell = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="tenure-settler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, standing: Standing, outcome: Outcome) -> None:
        """Have a lease ended so. Returns at once. Any thread."""
        standing.outcome = outcome
        self._new.append((standing, outcome))
        waiting = len(self._new)
        if (
            waiting >= self._ring_at or waiting + self._in_hand >= len(self._ledger)
        ) and not self._bell.is_set():
            self._bell.set()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """How many leases are still to be ended."""
        return len(self._new) + self._in_hand

    def clogged(self) -> bool:
        """Whether so much waits that no more is to be begun. For one thread."""
        if self.waiting < CLOGGED:
            return False
        # Looked at again, for it may have been written before there was somebody to be told.
        self._said_clogged = True
        return self.waiting >= CLOGGED

    def stop(self, seconds: float = 5.0) -> None:
        """Try once more what waits to be tried again, and end; waits for it a little."""
        self._stopping = True
        self._bell.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            self._wait()
            last = self._stopping
            endings = self._taken()
            try:
                self._write(endings)
            except Exception:
                # Renewed for ever and ended by nobody would be worse than a lapse.
                logger.exception("the settler leaves %d leases to lapse", len(endings))
                self._drop(endings)
            if last and not self._new:
                return

    def _wait(self) -> None:
        """Until something is to be written that need not wait for more."""
        self._ring_at = 1
        while not (self._new or self._stopping):
            self._bell.clear()
            if self._new or self._stopping:
                break
            until = self._later[0][0] - time.monotonic() if self._later else None
            if until is not None and until <= 0:
                return
            self._bell.wait(until)
        self._ring_at = ENOUGH
        self._bell.clear()
        if not (
            self._stopping
            or len(self._new) >= ENOUGH
            or len(self._new) + self._in_hand >= len(self._ledger)
        ):
            self._bell.wait(LINGER)

    def _taken(self) -> list[Ending]:
        endings = []
        while self._later and (self._stopping or self._later[0][0] <= time.monotonic()):
            endings.append(heapq.heappop(self._later)[2])
        while self._new and len(endings) < MOST:
            self._in_hand += 1
            endings.append(Ending(*self._new.popleft()))
        return endings

    def _write(self, endings: list[Ending]) -> None:
        """Write these, and what follows from the answers to them."""
        while endings:
            following: list[Ending] = []
            unreachable = False
            for batch in batches(self._measured(endings)):
                if unreachable:
                    self._postpone(batch)
                    continue
                try:
                    self._write_batch(batch, following)
                except BROKEN as error:
                    unreachable = True
                    self._postpone(batch, error)
                except Exception as error:
                    for ending in batch:
                        ending.tries += 1
                        ending.alone = ending.tries > 1
                    self._postpone(batch, error)
            endings = following

    def _measured(self, endings: Iterable[Ending]) -> Iterator[Ending]:
        """Those that are still to be written, with the size that they add to a statement."""
        for ending in endings:
            standing = ending.standing
            if ending.done:
                continue
            if standing.lost is not None:
                if ending.lost or not ending.broken:
                    log_dropped(standing)
                    self._done([ending], None)
                    continue
                ending.lost = True
            ending.measure()
            yield ending

    def _write_batch(self, batch: list[Ending], following: list[Ending]) -> None:
        sent = time.monotonic()
        worker_id = batch[0].standing.lease.worker_id
        try:
            answers = self._settle(worker_id, [ending.outcome for ending in batch])
        except NOT_STORABLE as error:
            if len(batch) == 1:
                self._refuse(batch[0], error, following)
                return
            for ending in batch:
                ending.alone = True
            following += batch
            return
        by_job = {ending.outcome.job_id: ending for ending in batch}
        done = []
        for answer in answers:
            ending = by_job[answer.job_id]
            verdict = answer.verdict
            if verdict is Verdict.OK or verdict is Verdict.ALREADY:
                done.append(ending)
            elif verdict is Verdict.DEFERRED:
                ending.standing.proved(sent)
                self._postpone([ending])
                continue
            elif verdict is Verdict.LOST:
                ending.standing.lose("the token is not the current one")
                log_dropped(ending.standing)
                done.append(ending)
            elif (next_outcome := follow_up(ending.outcome, verdict)) is not None:
                ending.outcome = next_outcome
                following.append(ending)
                continue
            else:
                done.append(ending)
                logger.warning(
                    "%s of job %d was answered %s: its lease will lapse",
                    ending.outcome.verb,
                    answer.job_id,
                    verdict,
                    extra=about(ending.standing.lease),
                )
            self._tell(ending, answer)
        self._drop(done)

    def _refuse(self, ending: Ending, error: Exception, following: list[Ending]) -> None:
        """The outcome can never be written: the job fails instead; never a second time."""
        if ending.standing.outcome is not ending.outcome and ending.outcome.verb is Verb.FAIL:
            logger.error(
                "no end of job %d can be stored, its lease will lapse: %s",
                ending.outcome.job_id,
                error,
                extra=about(ending.standing.lease),
            )
            self._done([ending], None)
            return
        what = "result" if ending.outcome.verb is Verb.COMPLETE else "outcome"
        ending.outcome = not_storable(ending.standing.lease, what, error)
        following.append(ending)

    def _postpone(self, endings: Sequence[Ending], error: Exception | None = None) -> None:
        """Write these later, each after a pause that grows with its tries."""
        if error is not None:
            logger.warning("%d outcomes could not be written: %s", len(endings), error)
        for ending in endings:
            ending.broken = ending.broken or error is not None
            ending.waits = ending.waits or pauses(0.05, 5.0)
            due = time.monotonic() + next(ending.waits)
            # One more try is due as soon as the lease is over.
            due = min(due, max(ending.standing.good_until, time.monotonic() + 0.05))
            heapq.heappush(self._later, (due, next(self._order), ending))

    def _done(self, endings: Sequence[Ending], answer: Settled | None) -> None:
        for ending in endings:
            self._tell(ending, answer)
        self._drop(endings)

    def _tell(self, ending: Ending, answer: Settled | None) -> None:
        if self._told is None:
            return
        try:
            self._told(ending.standing, ending.outcome, answer)
        except Exception:
            logger.exception(
                "the end of job %d was not taken",
                ending.outcome.job_id,
                extra=about(ending.standing.lease),
            )

    def _drop(self, endings: Sequence[Ending]) -> None:
        for ending in endings:
            self._in_hand -= not ending.done
            ending.done = True
        self._ledger.drop(*[ending.standing for ending in endings])
        if self._said_clogged and self.waiting < CLOGGED:
            self._said_clogged = False
            self._eased()
