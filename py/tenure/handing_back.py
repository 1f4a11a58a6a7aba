"""What becomes of leases when their runner stops."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TypeAlias

from tenure.control_plane import ControlPlane
from tenure.limits import MAX_LEASES
from tenure.standing import Key, Standing
from tenure.values import Outcome, Settled, Verb, Verdict
from tenure.writing import about

logger = logging.getLogger(__name__)


Told: TypeAlias = Callable[[Standing, Outcome, Settled], None]
"""told(standing, outcome, answer), once a lease has ended."""


def hand_back(
    plane: ControlPlane, standings: Sequence[Standing], *, told: Told | None = None
) -> list[Settled]:
    """End the leases under their tokens, so that other workers need not wait for them to lapse.

    What was not started is released uncharged. What was started is released with its attempt
    spent: it is queued again at once, or failed when that was its last attempt. A sealed job is
    completed. A handler that ends in the same instant wins or loses by its token, as always.
    """
    by_worker: dict[str, list[Outcome]] = defaultdict(list)
    known = {standing.key: standing for standing in standings}
    for standing in standings:
        lease = standing.lease
        by_worker[lease.worker_id].append(
            Outcome(job_id=lease.job_id, token=lease.token, verb=Verb.COMPLETE)
            if standing.sealed
            else Outcome(
                job_id=lease.job_id,
                token=lease.token,
                verb=Verb.RELEASE,
                started=standing.started,
            )
        )
    answers: list[Settled] = []
    asked: dict[Key, Outcome] = {}
    for worker_id, outcomes in by_worker.items():
        for first in range(0, len(outcomes), MAX_LEASES):
            answers += plane.settle(worker_id, outcomes[first : first + MAX_LEASES])
        asked.update(((outcome.job_id, outcome.token), outcome) for outcome in outcomes)
    for answer in answers:
        standing = known[answer.job_id, answer.token]
        if told is not None:
            told(standing, asked[standing.key], answer)
        if answer.verdict not in (Verdict.OK, Verdict.ALREADY, Verdict.LOST):
            logger.warning(
                "job %d could not be handed back (%s): its lease will lapse",
                answer.job_id,
                answer.verdict,
                extra=about(standing.lease),
            )
    return answers
