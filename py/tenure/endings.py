"""Leases on their way to their ends, in parts that one statement can carry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tenure import limits
from tenure.codec import JsonText, dumps
from tenure.ending import not_storable
from tenure.standing import Standing
from tenure.values import Outcome, Verb

MOST = 500
"""Outcomes in one statement."""

MOST_BYTES = 4 * 1024 * 1024
"""About as much as one statement carries; one outcome alone may be larger."""


class Ending:
    """One lease on its way to its end."""

    __slots__ = ("alone", "broken", "done", "lost", "outcome", "size", "standing", "tries", "waits")

    def __init__(self, standing: Standing, outcome: Outcome) -> None:
        self.standing = standing
        self.outcome = outcome
        self.size = 0
        self.tries = 0
        self.waits: Iterator[float] | None = None
        self.alone = False
        """It may be what the statement failed for."""
        self.broken = False
        """A try failed that may have been written all the same."""
        self.lost = False
        """The one try after the loss of the lease was made."""
        self.done = False

    def measure(self) -> None:
        """Note what it adds to a statement; a result becomes the text that is stored."""
        outcome = self.outcome
        if outcome.failure is not None:
            self.size = len(outcome.failure.traceback or "") + len(outcome.failure.message)
        elif isinstance(outcome.result, JsonText):
            self.size = len(outcome.result)
        elif outcome.result is not None:
            self._encode(outcome)

    def _encode(self, outcome: Outcome) -> None:
        try:
            text = dumps(outcome.result, "result", limits.RESULT_BYTES)
        except Exception as error:  # of any kind: the value may be the handler's own
            self.outcome = not_storable(self.standing.lease, "result", error)
        else:
            self.size = len(text)
            self.outcome = Outcome(
                job_id=outcome.job_id,
                token=outcome.token,
                verb=Verb.COMPLETE,
                result=JsonText(text),
            )


def batches(endings: Iterable[Ending]) -> Iterator[list[Ending]]:
    """Parts that one statement can carry: of one worker, no job twice, not too large.

    What may be the reason why a statement failed goes alone.
    """
    open_: dict[str, tuple[list[Ending], set[int]]] = {}
    sizes: dict[str, int] = {}
    for ending in endings:
        if ending.alone:
            yield [ending]
            continue
        worker_id, job_id = ending.standing.lease.worker_id, ending.outcome.job_id
        batch, jobs = open_.setdefault(worker_id, ([], set()))
        size = sizes.get(worker_id, 0) + ending.size
        if batch and (job_id in jobs or len(batch) == MOST or size > MOST_BYTES):
            yield batch
            batch, jobs = open_[worker_id] = ([], set())
            size = ending.size
        batch.append(ending)
        jobs.add(job_id)
        sizes[worker_id] = size
    for batch, _ in open_.values():
        yield batch
